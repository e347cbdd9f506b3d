"""What 0.0.51 can ask for beside a room: its participants, last message, the caller's membership, counts."""

from __future__ import annotations

from typing import Any

from band_rest.types import ChatEventRequest, ChatMessage, MeChatRoomListItem

from harness.cast import Bot, Person
from harness.refusals import INVALID, refused

INCLUDED = {
    "participants",
    "participant_count",
    "participants_truncated",
    "last_message",
    "membership",
    "my_role",
    "my_status",
    "via_agent_ids",
}


def included(row: MeChatRoomListItem) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.model_fields_set & INCLUDED}


async def chats(person: Person, include: list[str]) -> dict[str, MeChatRoomListItem]:
    return {row.id: row for row in (await person.rest.human_api_chats.list_my_chats(include=include)).data}


async def test_participants(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    row = (await chats(ann, ["participants"]))[room]
    assert (row.participant_count, row.participants_truncated) == (2, False)
    assert [(one.id, one.role, one.status) for one in row.participants] == sorted(
        [(ann.id, "owner", "active"), (bot.id, "member", "inactive")]
    )
    assert included(row).keys() == {"participants", "participant_count", "participants_truncated"}


async def test_last_message(ann: Person, bot: Bot) -> None:
    quiet, busy = await ann.open_room(), await ann.open_room(bot)
    await ann.say(busy, "first", bot)
    sent = await ann.say(busy, "last", bot)

    rows = await chats(ann, ["last_message"])

    assert included(rows[quiet]) == {"last_message": None}
    assert rows[busy].last_message == await ann.message(busy, sent.id)
    assert isinstance(rows[busy].last_message, ChatMessage)


async def test_membership(ann: Person, bot: Bot) -> None:
    mine = await ann.open_room(bot)
    agents = await bot.open_room()
    both = await bot.open_room(ann)

    rows = await chats(ann, ["membership", "agent_rooms"])

    assert included(rows[mine]) == {
        "membership": "participant",
        "my_role": "owner",
        "my_status": "active",
        "via_agent_ids": [bot.id],
    }
    assert included(rows[agents]) == {
        "membership": "via_agent",
        "my_role": None,
        "my_status": None,
        "via_agent_ids": [bot.id],
    }
    assert (rows[both].membership, rows[both].my_role) == ("participant", "member")


async def test_the_total_is_counted_on_the_first_page_only(ann: Person) -> None:
    for _ in range(3):
        await ann.open_room()
    first = await ann.rest.human_api_chats.list_my_chats(include=["total_count"], limit=2)
    second = await ann.rest.human_api_chats.list_my_chats(
        include=["total_count"], limit=2, cursor=first.metadata.next_cursor
    )
    assert (first.metadata.total_count, second.metadata.total_count) == (3, None)


async def test_everything_at_once_in_both_spellings(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    await ann.say(room, "hello", bot)
    wanted = ["participants", "last_message", "membership", "total_count", "agent_rooms"]

    comma = (await ann.raw.get("/api/v1/me/chats", params={"include": ",".join(wanted)})).json()
    repeated = (await ann.raw.get("/api/v1/me/chats", params={"include": wanted})).json()

    assert comma == repeated
    assert comma["data"][0].keys() >= INCLUDED and comma["metadata"]["total_count"] == 1


async def test_what_is_included_may_change_along_a_walk(ann: Person) -> None:
    rooms = [await ann.open_room() for _ in range(2)]
    first = await ann.rest.human_api_chats.list_my_chats(limit=1)
    second = await ann.rest.human_api_chats.list_my_chats(
        limit=1, cursor=first.metadata.next_cursor, include=["participants", "last_message", "membership"]
    )
    assert [row.id for row in first.data + second.data] == rooms[::-1]


async def test_the_counts_of_a_room(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    await ann.say(room, "one", bot)
    await bot.say(room, "two", ann)
    for kind in ("tool_call", "tool_result", "tool_call", "thought"):
        event = ChatEventRequest(content="working", message_type=kind)
        await bot.rest.agent_api_events.create_agent_chat_event(room, event=event)

    detail = (await ann.rest.human_api_chats.get_my_chat_room(room, include="message_counts")).data
    plain = (await ann.rest.human_api_chats.get_my_chat_room(room)).data

    counts = {kind: count for kind, count in detail.message_counts.model_dump().items() if count}
    assert counts == {"text": 2, "tool_call": 2, "tool_result": 1, "thought": 1}
    assert "message_counts" not in plain.model_fields_set


async def test_a_room_has_no_other_includes(ann: Person) -> None:
    room = await ann.open_room()
    refusal = await refused(ann.rest.human_api_chats.get_my_chat_room, room, include=["message_counts", "secrets"])
    assert refusal == INVALID and refusal.names("/include/1")


async def test_an_agent_may_see_who_is_in_its_rooms(ann: Person, bot: Bot) -> None:
    room = await bot.open_room(ann)
    (row,) = (await bot.rest.agent_api_chats.list_agent_chats(include=["participants"])).data
    assert (row.id, row.participant_count, row.participants_truncated) == (room, 2, False)
    assert [(one.id, one.role) for one in row.participants] == sorted([(bot.id, "owner"), (ann.id, "member")])
