"""Context: what an agent that starts again needs to remember of a room."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import ChatEventRequest

from harness.cast import Bot, Cast, Person
from harness.refusals import INVALID, refused


@pytest.fixture
async def room(ann: Person, bot: Bot, cast: Cast) -> tuple[str, list[str]]:
    """A room with all that belongs to the agent's context, oldest first, and some that does not."""
    other = await cast.bot(ann)
    room = await ann.open_room(bot, other)
    asked = (await ann.say(room, "do this", bot)).id
    await ann.say(room, "not for the writer", other)
    thought = ChatEventRequest(content="thinking", message_type="thought")
    event = (await bot.rest.agent_api_events.create_agent_chat_event(room, event=thought)).data.id
    await other.rest.agent_api_events.create_agent_chat_event(room, event=thought)
    answered = (await bot.say(room, "done", ann)).id
    also = (await other.say(room, "thanks", bot)).id
    failed = (await ann.say(room, "and this", bot)).id
    await bot.rest.agent_api_messages.mark_agent_message_processing(room, failed)
    await bot.rest.agent_api_messages.mark_agent_message_failed(room, failed, error="no luck")
    return room, [asked, event, answered, also, failed]


async def test_context_is_what_the_agent_said_and_heard_oldest_first(bot: Bot, room: tuple[str, list[str]]) -> None:
    chat, expected = room
    page = await bot.rest.agent_api_context.get_agent_chat_context(chat)

    assert [row.id for row in page.data] == expected
    assert page.metadata.model_dump() == {
        "has_more": False,
        "limit": 50,
        "next_cursor": None,
        "page": 1,
        "page_size": 50,
        "total_count": 5,
        "total_pages": 1,
    }
    assert page.meta is not None and page.meta.model_dump() == page.metadata.model_dump()


async def test_a_cursor_walks_it(bot: Bot, room: tuple[str, list[str]]) -> None:
    chat, expected = room
    walked: list[str] = []
    cursor = None
    while True:
        page = await bot.rest.agent_api_context.get_agent_chat_context(chat, limit=2, cursor=cursor)
        walked += [row.id for row in page.data]
        assert page.metadata.has_more == (page.metadata.next_cursor is not None)
        cursor = page.metadata.next_cursor
        if cursor is None:
            break
    assert walked == expected


async def test_numbered_pages_walk_it_too(bot: Bot, room: tuple[str, list[str]]) -> None:
    chat, expected = room
    walked: list[str] = []
    for number in (1, 2, 3):
        reply = await bot.rest.agent_api_context.with_raw_response.get_agent_chat_context(
            chat, page=number, page_size=2
        )
        assert {"deprecation", "sunset"} <= reply.headers.keys()
        metadata = reply.data.metadata
        assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (number, 2, 5, 3)
        assert (metadata.limit, metadata.has_more) == (2, number < 3)
        walked += [row.id for row in reply.data.data]
    assert walked == expected


async def test_a_page_of_a_hundred_holds_a_hundred(bot: Bot, ann: Person) -> None:
    chat = await bot.open_room(ann)
    sent = [(await bot.say(chat, f"number {number}", ann)).id for number in range(101)]

    page = await bot.rest.agent_api_context.get_agent_chat_context(chat, page=1, page_size=100)
    assert [row.id for row in page.data] == sent[:100]
    assert (page.metadata.total_count, page.metadata.total_pages, page.metadata.has_more) == (101, 2, True)

    assert [row.id for row in (await bot.rest.agent_api_context.get_agent_chat_context(chat)).data] == sent[:50]


@pytest.mark.parametrize(
    ("parameter", "value"), [("limit", 0), ("page", 0), ("page_size", 0), ("cursor", "not a cursor")]
)
async def test_a_parameter_out_of_range_is_refused_by_name(
    bot: Bot, room: tuple[str, list[str]], parameter: str, value: Any
) -> None:
    refusal = await refused(bot.rest.agent_api_context.get_agent_chat_context, room[0], **{parameter: value})
    assert refusal == INVALID and refusal.names(f"/{parameter}")
