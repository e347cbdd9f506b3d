"""What an agent is served: the list by status, both ways of paging through it, and `/next`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from harness.cast import Bot, Cast, Person, delivery_of, token
from harness.refusals import INVALID, refused
from harness.waiting import eventually


@dataclass(frozen=True)
class Inbox:
    """A room in which Ann has sent the agent one message for each state that a delivery can be in."""

    room: str
    untouched: str
    processing: str
    processed: str
    failed: str


@pytest.fixture
async def inbox(ann: Person, bot: Bot) -> Inbox:
    room = await ann.open_room(bot)
    untouched, processing, processed, failed = [
        (await ann.say(room, text, bot)).id for text in ("untouched", "processing", "processed", "failed")
    ]
    marks = bot.rest.agent_api_messages
    for started in (processing, processed, failed):
        await marks.mark_agent_message_processing(room, started)
    await marks.mark_agent_message_processed(room, processed)
    await marks.mark_agent_message_failed(room, failed, error="no luck")
    # Its own message is not its work.
    await bot.say(room, "my own", ann)
    return Inbox(room, untouched, processing, processed, failed)


async def listed(bot: Bot, room: str, **query: Any) -> list[str]:
    return [row.id for row in (await bot.rest.agent_api_messages.list_agent_messages(room, **query)).data]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, ["untouched", "processing", "failed"]),
        ("pending", ["untouched", "failed"]),
        ("processing", ["processing"]),
        ("processed", ["processed"]),
        ("failed", ["failed"]),
        ("all", ["untouched", "processing", "processed", "failed"]),
    ],
)
async def test_each_status_lists_its_messages_oldest_first(
    bot: Bot, inbox: Inbox, status: str | None, expected: list[str]
) -> None:
    page = await bot.rest.agent_api_messages.list_agent_messages(inbox.room, status=status)
    assert [row.id for row in page.data] == [getattr(inbox, name) for name in expected]
    assert page.metadata.status_filter == status


async def test_a_listed_message_is_whole(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    sent = await ann.say(room, "hello", bot)

    (row,) = (await bot.rest.agent_api_messages.list_agent_messages(room)).data

    assert (row.id, row.content, row.message_type) == (sent.id, f"{token(bot)} hello", "text")
    assert (row.sender_id, row.sender_type, row.chat_room_id) == (ann.id, "User", room)
    assert row.inserted_at is not None and row.updated_at is not None and row.attachments == []
    mentioned = row.metadata.model_dump()["mentions"]
    assert [(one["id"], one["handle"], one["name"]) for one in mentioned] == [(bot.id, bot.handle, bot.name)]


async def test_listing_by_itself_delivers_nothing(ann: Person, bot: Bot, inbox: Inbox) -> None:
    await listed(bot, inbox.room)
    assert await ann.delivery(inbox.room, inbox.untouched, bot) is None


@pytest.fixture
async def backlog(ann: Person, bot: Bot) -> tuple[str, list[str]]:
    room = await ann.open_room(bot)
    return room, [(await ann.say(room, f"number {number}", bot)).id for number in range(5)]


@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_cursor_walks_the_whole_list_in_either_order(
    bot: Bot, backlog: tuple[str, list[str]], order: str
) -> None:
    room, sent = backlog
    walked: list[list[str]] = []
    cursor = None
    while True:
        page = await bot.rest.agent_api_messages.list_agent_messages(room, sort_order=order, limit=2, cursor=cursor)
        walked.append([row.id for row in page.data])
        assert page.metadata.limit == 2
        assert page.metadata.has_more == (page.metadata.next_cursor is not None)
        cursor = page.metadata.next_cursor
        if cursor is None:
            break

    expected = sent if order == "asc" else sent[::-1]
    assert walked == [expected[0:2], expected[2:4], expected[4:5]]


async def test_a_walk_is_not_disturbed_by_what_is_settled_or_arrives_meanwhile(
    ann: Person, bot: Bot, backlog: tuple[str, list[str]]
) -> None:
    room, sent = backlog
    marks = bot.rest.agent_api_messages
    first = await marks.list_agent_messages(room, limit=2)
    await marks.mark_agent_message_processing(room, sent[0])
    await marks.mark_agent_message_processed(room, sent[0])
    late = (await ann.say(room, "late", bot)).id

    rest = await marks.list_agent_messages(room, limit=10, cursor=first.metadata.next_cursor)

    assert [row.id for row in first.data + rest.data] == [*sent, late]


async def test_pages_by_number_still_work_and_say_that_they_end(bot: Bot, backlog: tuple[str, list[str]]) -> None:
    room, sent = backlog
    walked: list[str] = []
    for number in (1, 2, 3):
        reply = await bot.rest.agent_api_messages.with_raw_response.list_agent_messages(room, page=number, page_size=2)
        assert {"deprecation", "sunset"} <= reply.headers.keys()
        metadata = reply.data.metadata
        assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (number, 2, 5, 3)
        assert (metadata.limit, metadata.has_more) == (2, number < 3)
        walked += [row.id for row in reply.data.data]
    assert walked == sent


async def test_without_paging_both_families_are_answered(bot: Bot, backlog: tuple[str, list[str]]) -> None:
    room, sent = backlog
    page = await bot.rest.agent_api_messages.list_agent_messages(room)
    assert [row.id for row in page.data] == sent
    assert page.metadata.model_dump() == {
        "has_more": False,
        "limit": 20,
        "next_cursor": None,
        "page": 1,
        "page_size": 20,
        "total_count": 5,
        "total_pages": 1,
        "status_filter": None,
    }


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("status", "lost"),
        ("sort_order", "random"),
        ("limit", 0),
        ("page", 0),
        ("page_size", 0),
        ("cursor", "not a cursor"),
    ],
)
async def test_a_parameter_out_of_range_is_refused_by_name(bot: Bot, inbox: Inbox, parameter: str, value: Any) -> None:
    refusal = await refused(bot.rest.agent_api_messages.list_agent_messages, inbox.room, **{parameter: value})
    assert refusal == INVALID and refusal.names(f"/{parameter}")


async def test_a_large_limit_is_cut(bot: Bot, inbox: Inbox) -> None:
    assert (await bot.rest.agent_api_messages.list_agent_messages(inbox.room, limit=1000)).metadata.limit == 100


async def test_next_serves_the_oldest_that_is_not_processed(bot: Bot, backlog: tuple[str, list[str]]) -> None:
    room, sent = backlog
    marks = bot.rest.agent_api_messages
    served = []
    while (message := await bot.next(room)) is not None:
        served.append(message.id)
        await marks.mark_agent_message_processing(room, message.id)
        await marks.mark_agent_message_processed(room, message.id)
    assert served == sent


async def test_next_serves_again_what_was_started_or_has_failed(bot: Bot, backlog: tuple[str, list[str]]) -> None:
    room, sent = backlog
    marks = bot.rest.agent_api_messages
    assert (await bot.next(room)).id == sent[0]
    assert (await bot.next(room)).id == sent[0], "asking claims nothing"
    await marks.mark_agent_message_processing(room, sent[0])
    assert (await bot.next(room)).id == sent[0]
    await marks.mark_agent_message_failed(room, sent[0], error="no luck")
    assert (await bot.next(room)).id == sent[0]


async def test_next_delivers_what_it_serves(ann: Person, bot: Bot, backlog: tuple[str, list[str]]) -> None:
    room, sent = backlog
    await bot.next(room)

    delivery = await ann.settled(room, sent[0], bot, "delivered")

    assert delivery["delivered_at"] is not None and delivery.get("processed_at") is None
    assert await ann.delivery(room, sent[1], bot) is None


async def test_an_empty_room_has_nothing_next(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    reply = await bot.rest.agent_api_messages.with_raw_response.get_agent_next_message(room)
    assert (reply.status_code, reply.data) == (204, None)


async def test_the_same_message_is_settled_by_each_recipient_on_its_own(ann: Person, bot: Bot, cast: Cast) -> None:
    other = await cast.bot(ann)
    room = await ann.open_room(bot, other)
    sent = (await ann.say(room, "both of you", bot, other)).id
    await bot.rest.agent_api_messages.mark_agent_message_processing(room, sent)
    await bot.rest.agent_api_messages.mark_agent_message_processed(room, sent)

    assert await bot.next(room) is None
    assert (await other.next(room)).id == sent

    async def both() -> dict[str, str] | None:
        row = await ann.message(room, sent)
        states = {who.id: (delivery_of(row, who) or {}).get("status") for who in (bot, other)}
        return states if states == {bot.id: "processed", other.id: "delivered"} else None

    await eventually(both, what="each recipient's own state is shown")
