"""How each way in which a turn can end shows in the room and on the message."""

from __future__ import annotations

from typing import Any

import pytest
from band.core.protocols import AgentToolsProtocol
from band.core.types import PlatformMessage

from harness.cast import Bot, Cast, Person, token
from harness.observer import observing
from harness.scripted import (
    Scripted,
    agent_of,
    declining,
    raising,
    recruiting,
    replying,
    running,
    silent,
    subscribed,
)
from harness.server import Server
from harness.waiting import eventually

SILENCE = "The agent ended its turn without replying or calling band_no_reply, so nothing reached the room."
CRASH = "Internal error while processing message; see agent logs."


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


def attempts(delivery: dict[str, Any]) -> list[tuple[int, str, str | None]]:
    return [(one["attempt_number"], one["status"], one.get("error")) for one in delivery["attempts"]]


async def errors(ann: Person, room: str) -> list[tuple[str, str, dict[str, Any]]]:
    """The error events of a room: by whom, what, with which metadata."""
    rows = await ann.messages(room, message_type="error")
    return [(row.sender_id, row.content, row.metadata.model_dump()["failure"]) for row in rows]


async def test_a_reply_is_heard_and_the_message_is_done(server: Server, ann: Person, bot: Bot, room: str) -> None:
    adapter = Scripted(replying("Hello yourself"))
    async with observing(server, ann, room) as seen, running(agent_of(server, bot, adapter)) as agent:
        await subscribed(agent, room)
        sent = (await ann.say(room, "Hello", bot)).id

        done = await ann.settled(room, sent, bot, "processed")
        await seen.sees(sent, bot, "processed")

    assert attempts(done) == [(1, "success", None)]
    assert await ann.texts(room) == [(ann.id, f"{token(bot)} Hello"), (bot.id, f"{token(ann)} Hello yourself")]
    assert seen.states(sent, bot)[-2:] == ["processing", "processed"]
    assert [(one.sender_id, one.content) for one in seen.created] == await ann.texts(room)
    (heard,) = adapter.heard
    assert (heard.content, heard.sender_id, heard.sender_type) == (f"@{bot.handle} Hello", ann.id, "User")


async def test_a_decline_is_done_and_nobody_hears_it(server: Server, ann: Person, bot: Bot, room: str) -> None:
    async with running(agent_of(server, bot, Scripted(declining))):
        sent = (await ann.say(room, "Just so you know", bot)).id
        done = await ann.settled(room, sent, bot, "processed")

    assert attempts(done) == [(1, "success", None)]
    assert [row.id for row in await ann.messages(room)] == [sent]


async def test_bringing_somebody_in_is_work_enough(
    server: Server, ann: Person, bot: Bot, room: str, cast: Cast
) -> None:
    reviewer = await cast.bot(ann, "Reviewer")
    async with running(agent_of(server, bot, Scripted(recruiting(reviewer)))):
        sent = (await ann.say(room, "Get help", bot)).id
        done = await ann.settled(room, sent, bot, "processed")

    assert attempts(done) == [(1, "success", None)]
    assert [row.id for row in await ann.messages(room)] == [sent]
    members = (await reviewer.rest.agent_api_participants.list_agent_chat_participants(room)).data
    assert {(one.id, one.role) for one in members} == {(ann.id, "owner"), (bot.id, "member"), (reviewer.id, "member")}


async def test_a_silent_turn_is_reported_and_failed(server: Server, ann: Person, bot: Bot, room: str) -> None:
    async with running(agent_of(server, bot, Scripted(silent))):
        sent = (await ann.say(room, "Anybody there?", bot)).id
        failed = await ann.settled(room, sent, bot, "failed")

    assert attempts(failed) == [(1, "failed", "turn ended without a reply")]
    report = {"provider": "band-runtime", "code": None, "message": SILENCE, "detail": None}
    assert await errors(ann, room) == [(bot.id, SILENCE, report)]


async def test_a_turn_that_raises_is_failed_and_its_text_stays_out_of_the_room(
    server: Server, ann: Person, bot: Bot, room: str
) -> None:
    async with running(agent_of(server, bot, Scripted(raising(RuntimeError("the model said no"))))):
        sent = (await ann.say(room, "Try this", bot)).id
        failed = await ann.settled(room, sent, bot, "failed")
        # The runtime marks first and reports afterwards.
        await eventually(lambda: errors(ann, room), what="the failure is reported to the room")

    assert attempts(failed) == [(1, "failed", "the model said no")]
    ((sender, content, report),) = await errors(ann, room)
    assert (sender, content) == (bot.id, CRASH)
    assert (report["provider"], report["message"]) == ("band-runtime", CRASH)


async def test_what_has_failed_is_done_by_the_next_process(server: Server, ann: Person, bot: Bot, room: str) -> None:
    async with running(agent_of(server, bot, Scripted(raising(RuntimeError("the model said no"))))):
        sent = (await ann.say(room, "Try this", bot)).id
        await ann.settled(room, sent, bot, "failed")
    async with running(agent_of(server, bot, Scripted(replying("Done")))):
        done = await ann.settled(room, sent, bot, "processed")

    assert attempts(done) == [(1, "failed", "the model said no"), (2, "success", None)]


async def test_thoughts_and_tool_calls_are_shown_to_people(server: Server, ann: Person, bot: Bot, room: str) -> None:
    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        await tools.send_event("hmm", "thought")
        await tools.send_event('{"name":"get_weather","args":{},"tool_call_id":"c1"}', "tool_call")
        await tools.send_event('{"name":"get_weather","output":"sunny","tool_call_id":"c1"}', "tool_result")
        await tools.send_message("Sunny", mentions=[message.sender_id])

    async with running(agent_of(server, bot, Scripted(turn))):
        sent = (await ann.say(room, "Weather?", bot)).id
        await ann.settled(room, sent, bot, "processed")

    kinds = [row.message_type for row in await ann.messages(room)]
    assert kinds == ["text", "thought", "tool_call", "tool_result", "text"]


async def test_a_new_process_remembers_the_room(server: Server, ann: Person, bot: Bot, room: str) -> None:
    async with running(agent_of(server, bot, Scripted(replying("First answer")))):
        first = (await ann.say(room, "First question", bot)).id
        await ann.settled(room, first, bot, "processed")

    remembered: list[list[str]] = []

    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        context = await tools.fetch_room_context(room_id=room)
        remembered.append([row["content"] for row in context["data"]])
        await tools.send_message("Second answer", mentions=[message.sender_id])

    async with running(agent_of(server, bot, Scripted(turn))):
        second = (await ann.say(room, "Second question", bot)).id
        await ann.settled(room, second, bot, "processed")

    assert remembered == [
        [f"{token(bot)} First question", f"{token(ann)} First answer", f"{token(bot)} Second question"]
    ]


async def test_a_mention_of_somebody_who_is_not_in_the_room_is_told_to_the_model(
    server: Server, ann: Person, bot: Bot, room: str, cast: Cast
) -> None:
    outside = await cast.bot(ann, "Outside")
    told: list[str] = []

    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        try:
            await tools.send_message("hello", mentions=[{"id": outside.id, "handle": outside.handle}])
        except Exception as error:
            told.append(str(error))
        await tools.send_message("They are not here", mentions=[message.sender_id])

    async with running(agent_of(server, bot, Scripted(turn))):
        sent = (await ann.say(room, "Tell Outside", bot)).id
        await ann.settled(room, sent, bot, "processed")

    assert len(told) == 1 and "mentioned_participant_not_in_room" in told[0]
