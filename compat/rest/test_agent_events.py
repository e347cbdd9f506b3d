"""Events: what an agent shows of its work without speaking to anybody."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import ChatEventRequest

from harness.cast import UNKNOWN_ID, Bot, Cast, Person
from harness.refusals import INVALID, Refusal, refused

CONTENT_MAX = 16_384


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await bot.open_room(ann)


async def post(bot: Bot, room: str, kind: str, content: str = "working", **more: Any) -> Any:
    event = ChatEventRequest(content=content, message_type=kind, **more)
    return (await bot.rest.agent_api_events.create_agent_chat_event(room, event=event)).data


async def post_refused(bot: Bot, room: str, kind: str, content: str = "working", **more: Any) -> Refusal:
    event = ChatEventRequest(content=content, message_type=kind, **more)
    return await refused(bot.rest.agent_api_events.create_agent_chat_event, room, event=event)


@pytest.mark.parametrize(
    ("kind", "metadata"),
    [
        ("tool_call", {"args": {"city": "Haifa"}, "nested": [1, None, True]}),
        ("tool_result", {"output": "sunny"}),
        ("thought", {}),
        ("error", {"failure": {"provider": "band-runtime", "code": None, "message": "no", "detail": None}}),
        ("task", {"band_usage": {"input_tokens": 12}}),
        ("attention", {"kind": "question", "blocking": True}),
    ],
)
async def test_each_kind_of_event_is_kept_as_it_was_sent(
    ann: Person, bot: Bot, room: str, kind: str, metadata: dict[str, Any]
) -> None:
    made = await post(bot, room, kind, "what I do", metadata=metadata)

    assert (made.success, made.message_type) == (True, kind)
    row = await ann.message(room, made.id)
    assert (row.content, row.message_type, row.sender_id, row.sender_type) == ("what I do", kind, bot.id, "Agent")
    raw = (await ann.raw.get(f"/api/v1/me/chats/{room}/messages")).json()["data"][0]
    assert (raw["id"], raw["metadata"]) == (made.id, metadata)
    assert [one.id for one in (await bot.rest.agent_api_context.get_agent_chat_context(room)).data] == [made.id]


async def test_no_metadata_may_be_said_in_two_ways(bot: Bot, room: str) -> None:
    assert (await post(bot, room, "thought", metadata=None)).success
    assert (await post(bot, room, "thought")).success


async def test_no_agent_is_ever_served_an_event(ann: Person, bot: Bot, room: str, cast: Cast) -> None:
    other = await cast.bot(ann)
    await bot.add(room, other)
    await post(bot, room, "task", f"@[[{other.id}]] look", metadata={"mentions": [{"id": other.id}]})
    assert await other.next(room) is None
    assert (await other.rest.agent_api_messages.list_agent_messages(room, status="all")).data == []
    assert (await other.rest.agent_api_context.get_agent_chat_context(room)).data == []


@pytest.mark.parametrize("kind", ["text", "usage", "system", "participant", ""])
async def test_only_event_kinds_are_events(ann: Person, bot: Bot, room: str, kind: str) -> None:
    refusal = await post_refused(bot, room, kind)
    assert refusal == INVALID and refusal.names("/event/message_type")
    assert await ann.messages(room) == []


async def test_content_is_visible_and_of_bounded_length(ann: Person, bot: Bot, room: str) -> None:
    longest = await post(bot, room, "thought", "ü" * CONTENT_MAX)
    assert len((await ann.message(room, longest.id)).content) == CONTENT_MAX
    for content in ("", "  ", "x" * (CONTENT_MAX + 1)):
        refusal = await post_refused(bot, room, "thought", content)
        assert refusal == INVALID and refusal.names("/event/content")
    assert len(await ann.messages(room)) == 1


async def test_metadata_is_of_bounded_size(bot: Bot, room: str) -> None:
    assert (await post(bot, room, "tool_result", metadata={"output": "x" * 65_000})).success
    refusal = await post_refused(bot, room, "tool_result", metadata={"output": "x" * 66_000})
    assert refusal == INVALID and refusal.names("/event/metadata")


@pytest.mark.parametrize("kind", ["question", "assumption", "failure", "review"])
async def test_attention_says_what_for(bot: Bot, room: str, kind: str) -> None:
    assert (await post(bot, room, "attention", metadata={"kind": kind})).success


@pytest.mark.parametrize("metadata", [None, {}, {"kind": "whim"}, {"kind": None}])
async def test_attention_for_no_known_reason_is_refused(bot: Bot, room: str, metadata: Any) -> None:
    refusal = await post_refused(bot, room, "attention", metadata=metadata)
    assert refusal == INVALID
    assert any(pointer.startswith("/event/metadata") for pointer in refusal.details)


async def test_attention_may_resolve_an_earlier_attention_of_the_room_only(bot: Bot, room: str) -> None:
    asked = await post(bot, room, "attention", metadata={"kind": "question", "blocking": True})
    assert (await post(bot, room, "attention", metadata={"kind": "question", "resolves": asked.id})).success

    thought = await post(bot, room, "thought")
    elsewhere = await post(bot, await bot.open_room(), "attention", metadata={"kind": "question"})
    for nothing in (UNKNOWN_ID, thought.id, elsewhere.id):
        refusal = await post_refused(bot, room, "attention", metadata={"kind": "review", "resolves": nothing})
        assert refusal == INVALID
        assert any(pointer.startswith("/event/metadata") for pointer in refusal.details)


async def test_attention_to_a_task_needs_a_task_of_the_room(bot: Bot, room: str) -> None:
    refusal = await post_refused(bot, room, "attention", metadata={"kind": "review", "task_id": UNKNOWN_ID})
    assert refusal == INVALID
    assert any(pointer.startswith("/event/metadata") for pointer in refusal.details)
