"""The Python SDK and the Rust SDK in one room: they hand work to each other, and remember what the other wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from band.converters.anthropic import AnthropicHistoryConverter

from harness.cast import Cast, Person, token
from harness.plays import SDKS, hears
from harness.server import Server

CALL = {"name": "get_weather", "args": {"city": "Lisbon"}, "tool_call_id": "c1"}
RESULT = {"name": "get_weather", "output": "sunny", "tool_call_id": "c1"}
ORDERS = [("python", "rust"), ("rust", "python")]


def asks(handle: str, text: str) -> dict[str, Any]:
    return {"call": {"tool": "band_send_message", "arguments": {"content": text, "mentions": [f"@{handle}"]}}}


def event(kind: str, content: dict[str, Any]) -> dict[str, Any]:
    return {"event": {"message_type": kind, "content": json.dumps(content)}}


@pytest.mark.parametrize(("writes", "reviews"), ORDERS)
async def test_they_hand_work_to_each_other(
    server: Server, cast: Cast, ann: Person, tmp_path: Path, writes: str, reviews: str
) -> None:
    writer, reviewer = await cast.bot(ann, "Writer"), await cast.bot(ann, "Reviewer")
    room = await ann.open_room(writer)
    brings = {"call": {"tool": "band_add_participant", "arguments": {"identifier": f"@{reviewer.handle}"}}}
    writing = {"turns": [[brings, asks(reviewer.handle, "Please review")], [asks(ann.handle, "It is finished")]]}
    reviewing = {"turns": [[{"think": "Hm."}, {"reply": "Looks good"}]]}
    async with (
        SDKS[writes](server, writer, writing, tmp_path),
        SDKS[reviews](server, reviewer, reviewing, tmp_path),
    ):
        asked = (await ann.say(room, "Write a poem", writer)).id
        await ann.settled(room, asked, writer, "processed")
        draft = next(row.id for row in await ann.messages(room, message_type="text") if row.sender_id == writer.id)
        await ann.settled(room, draft, reviewer, "processed")
        verdict = next(row.id for row in await ann.messages(room, message_type="text") if row.sender_id == reviewer.id)
        await ann.settled(room, verdict, writer, "processed")

    assert await ann.texts(room) == [
        (ann.id, f"{token(writer)} Write a poem"),
        (writer.id, f"{token(reviewer)} Please review"),
        (reviewer.id, f"{token(writer)} Looks good"),
        (writer.id, f"{token(ann)} It is finished"),
    ]


@pytest.mark.parametrize(("before", "after"), [*ORDERS, ("python", "python"), ("rust", "rust")])
async def test_what_one_wrote_the_other_remembers(
    server: Server, cast: Cast, ann: Person, tmp_path: Path, before: str, after: str
) -> None:
    """The agent is rewritten: its next process is of the other SDK, and knows its past, calls of tools included."""
    bot = await cast.bot(ann, "Weather")
    room = await ann.open_room(bot)
    script = {"turns": [[event("tool_call", CALL), event("tool_result", RESULT), {"reply": "Sunny"}]]}
    async with SDKS[before](server, bot, script, tmp_path):
        first = (await ann.say(room, "Weather?", bot)).id
        await ann.settled(room, first, bot, "processed")
    async with SDKS[after](server, bot, {"turns": [[{"reply": "Still sunny"}]]}, tmp_path) as player:
        second = (await ann.say(room, "And now?", bot)).id
        await ann.settled(room, second, bot, "processed")
        await hears(player, 1)
        history = player.heard[0]["history"]

    if after == "rust":
        assert [(kind, own) for kind, _, own in history] == [
            ("text", False),
            ("tool_call", True),
            ("tool_result", True),
            ("text", True),
        ]
        assert [json.loads(content) for kind, content, _ in history if kind.startswith("tool")] == [CALL, RESULT]
        assert history[0][1] == f"@{bot.handle} Weather?"
        return
    converter = AnthropicHistoryConverter()
    converter.set_agent_name(bot.name)
    asked, called, answered, *_ = history.convert(converter)
    assert asked["role"] == "user" and "Weather?" in asked["content"]
    (use,) = called["content"]
    assert (use["type"], use["name"], use["input"], use["id"]) == ("tool_use", "get_weather", CALL["args"], "c1")
    (result,) = answered["content"]
    assert (result["type"], result["tool_use_id"], result["content"]) == ("tool_result", "c1", "sunny")
