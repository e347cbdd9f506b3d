"""A person's rooms: creating, finding, reading, renaming, archiving and deleting them."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.human_api_chats.types import CreateMyChatRoomRequestChat as NewRoom

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, message, token
from harness.refusals import FORBIDDEN, INVALID, NOT_FOUND, raw, refused, refused_raw, unprocessable

# What a room carries while the deployment has task boards.
BOARD = {"description", "agents", "task_counts", "work_status"}


async def rooms(ann: Person, **query: Any) -> list[str]:
    return [room.id for room in (await ann.rest.human_api_chats.list_my_chats(**query)).data]


async def test_a_room_belongs_to_the_person_who_created_it(ann: Person) -> None:
    room = (await ann.rest.human_api_chats.create_my_chat_room(chat=NewRoom(title=" Plans "))).data

    assert (room.title, room.status, room.type, room.task_id) == ("Plans", "active", "direct", None)
    assert "last_message_at" in room.model_fields_set and room.last_message_at is None
    assert (await ann.rest.human_api_chats.get_my_chat_room(room.id)).data.model_dump(exclude_unset=True) == (
        room.model_dump(exclude_unset=True)
    )
    (me,) = (await ann.rest.human_api_participants.list_my_chat_participants(room.id)).data
    assert (me.id, me.type, me.role, me.status) == (ann.id, "User", "owner", "active")


async def test_the_smallest_request_makes_a_room(ann: Person) -> None:
    for chat in (NewRoom(), NewRoom(title=None, task_id=None), NewRoom(title="  ")):
        assert (await ann.rest.human_api_chats.create_my_chat_room(chat=chat)).data.title is None


async def test_a_room_takes_its_title_from_its_first_text(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    await ann.say(room, f"Hello {token(bot)}, " + "long " * 40, bot)
    await ann.say(room, "and more", bot)

    title = (await ann.rest.human_api_chats.get_my_chat_room(room)).data.title

    assert title.startswith("Hello") and "long long" in title and "@[[" not in title and len(title) <= 60


@pytest.mark.parametrize(
    ("chat", "field"),
    [
        ({"title": "x" * 121}, "/chat/title"),
        ({"title": "two\nlines"}, "/chat/title"),
        ({"task_id": "task one"}, "/chat/task_id"),
        ({"status": "archived"}, "/chat/status"),
    ],
)
async def test_a_room_that_cannot_be_is_refused_by_name(ann: Person, chat: dict[str, str], field: str) -> None:
    refusal = await refused(ann.rest.human_api_chats.create_my_chat_room, chat=NewRoom(**chat))
    assert refusal == INVALID and refusal.names(field)
    assert await rooms(ann) == []


async def test_the_type_of_a_room_follows_how_it_came_to_be(ann: Person, bot: Bot, cast: Cast) -> None:
    get = ann.rest.human_api_chats.get_my_chat_room
    room = await ann.open_room(bot)
    assert (await get(room)).data.type == "direct"
    await ann.add(room, await cast.bot(ann))
    assert (await get(room)).data.type == "group"
    task = (await ann.rest.human_api_chats.create_my_chat_room(chat=NewRoom(task_id=UNKNOWN_ID))).data
    assert (task.type, task.task_id) == ("task", UNKNOWN_ID)


async def test_the_last_message_moves_a_rooms_date_and_a_rename_does_not(ann: Person, bot: Bot) -> None:
    get = ann.rest.human_api_chats.get_my_chat_room
    room = await ann.open_room(bot)
    sent = await ann.message(room, (await ann.say(room, "hello", bot)).id)
    assert (await get(room)).data.last_message_at == sent.inserted_at

    await rename(ann, room, "Plans")

    renamed = (await get(room)).data
    assert (renamed.title, renamed.last_message_at) == ("Plans", sent.inserted_at)


async def test_rooms_are_listed_newest_first(ann: Person) -> None:
    one, two, three = [await ann.open_room(title=name) for name in ("One", "Two", "Three")]
    # A change makes a room recent, but not new.
    await rename(ann, one, "First")

    assert await rooms(ann) == [three, two, one]
    assert await rooms(ann, order="asc") == [one, two, three]
    assert await rooms(ann, sort_by="updated_at") == [one, three, two]
    assert await rooms(ann, sort_by="updated_at", order="asc") == [two, three, one]


async def test_rooms_can_be_narrowed_by_status_and_type(ann: Person, bot: Bot, cast: Cast) -> None:
    direct = await ann.open_room(bot)
    group = await ann.open_room(bot, await cast.bot(ann))
    task = (await ann.rest.human_api_chats.create_my_chat_room(chat=NewRoom(task_id=UNKNOWN_ID))).data.id
    await ann.raw.post(f"/api/v1/me/chats/{direct}/archive")

    assert await rooms(ann) == [task, group, direct]
    assert await rooms(ann, status="active") == [task, group]
    assert await rooms(ann, status="archived") == [direct]
    assert await rooms(ann, status="closed") == []
    assert await rooms(ann, type="direct") == [direct]
    assert await rooms(ann, type="group") == [group]
    assert await rooms(ann, type="task", status="active") == [task]


async def test_a_plain_list_carries_nothing_that_was_not_asked_for(ann: Person, bot: Bot) -> None:
    await ann.open_room(bot)
    reply = (await ann.raw.get("/api/v1/me/chats")).json()
    (row,) = reply["data"]
    plain = {"id", "title", "task_id", "status", "type", "last_message_at", "inserted_at", "updated_at"}
    assert row.keys() <= plain | BOARD
    assert reply["metadata"] == {"has_more": False, "limit": 20, "next_cursor": None}


async def test_rooms_of_ones_agents_are_listed_on_request(ann: Person, bot: Bot) -> None:
    mine = await ann.open_room()
    agents = await bot.open_room()

    assert await rooms(ann) == [mine]
    assert await rooms(ann, include="agent_rooms") == [agents, mine]


@pytest.mark.parametrize("sort_by", ["inserted_at", "updated_at"])
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_cursor_walks_every_order(ann: Person, sort_by: str, order: str) -> None:
    for number in range(5):
        await ann.open_room(title=f"Room {number}")
    everything = await rooms(ann, sort_by=sort_by, order=order)
    walked: list[str] = []
    cursor = None
    while True:
        page = await ann.rest.human_api_chats.list_my_chats(sort_by=sort_by, order=order, limit=2, cursor=cursor)
        walked += [room.id for room in page.data]
        assert page.metadata.has_more == (page.metadata.next_cursor is not None)
        cursor = page.metadata.next_cursor
        if cursor is None:
            break
    assert walked == everything and len(walked) == 5


async def test_numbered_pages_still_work(ann: Person) -> None:
    for number in range(3):
        await ann.open_room(title=f"Room {number}")
    walked: list[str] = []
    for number in (1, 2):
        page = await ann.rest.human_api_chats.list_my_chats(page=number, page_size=2)
        metadata = page.metadata
        assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (number, 2, 3, 2)
        walked += [room.id for room in page.data]
    assert walked == await rooms(ann)


@pytest.mark.parametrize(
    "change",
    [{"include": "agent_rooms"}, {"sort_by": "updated_at"}, {"order": "asc"}, {"status": "active"}, {"type": "direct"}],
)
async def test_a_cursor_belongs_to_its_list(ann: Person, change: dict[str, str]) -> None:
    for _ in range(2):
        await ann.open_room()
    first = await ann.rest.human_api_chats.list_my_chats(limit=1)
    refusal = await refused(
        ann.rest.human_api_chats.list_my_chats, limit=1, cursor=first.metadata.next_cursor, **change
    )
    assert refusal == unprocessable("cursor_filter_mismatch")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("status", "lost"),
        ("type", "secret"),
        ("sort_by", "colour"),
        ("order", "random"),
        ("limit", 0),
        ("page", 0),
        ("page_size", 0),
        ("cursor", "no cursor"),
    ],
)
async def test_a_parameter_that_is_none_is_refused_by_name(ann: Person, parameter: str, value: Any) -> None:
    refusal = await refused(ann.rest.human_api_chats.list_my_chats, **{parameter: value})
    assert refusal == INVALID and refusal.names(f"/{parameter}")


async def test_an_unknown_include_is_refused_by_its_place(ann: Person) -> None:
    refusal = await refused(ann.rest.human_api_chats.list_my_chats, include="agent_rooms,secrets")
    assert refusal == INVALID and refusal.names("/include/1")


async def test_a_room_of_ones_agent_is_read_but_not_written(ann: Person, bot: Bot, cast: Cast) -> None:
    other = await cast.bot(ann)
    room = await bot.open_room(other, title="Plans")
    await bot.say(room, "between us", other)

    assert (await ann.rest.human_api_chats.get_my_chat_room(room)).data.title == "Plans"
    assert await ann.texts(room) == [(bot.id, f"{token(other)} between us")]
    members = (await ann.rest.human_api_participants.list_my_chat_participants(room)).data
    assert {member.id for member in members} == {bot.id, other.id}

    send = ann.rest.human_api_messages.send_my_chat_message
    assert await refused(send, room, message=message("hello", bot)) == NOT_FOUND
    assert refused_raw(await rename_reply(ann, room, "Mine")) == raw(FORBIDDEN)
    add = {"participant": {"participant_id": ann.id}}
    assert refused_raw(await ann.raw.post(f"/api/v1/me/chats/{room}/participants", json=add)) == raw(NOT_FOUND)
    remove = ann.rest.human_api_participants.remove_my_chat_participant
    assert await refused(remove, room, other.id) == NOT_FOUND


async def rename_reply(person: Person, room: str, title: Any) -> Any:
    return await person.raw.patch(f"/api/v1/me/chats/{room}", json={"chat": {"title": title}})


async def rename(person: Person, room: str, title: str) -> dict[str, Any]:
    reply = await rename_reply(person, room, title)
    assert reply.status_code == 200, reply.text
    return reply.json()["data"]


async def test_only_the_owner_renames_a_room(ann: Person, bot: Bot, cast: Cast) -> None:
    room = await ann.open_room(title="Plans")
    assert (await rename(ann, room, " Launch "))["title"] == "Launch"
    assert (await rename(ann, room, "Launch"))["title"] == "Launch"

    agents = await bot.open_room(ann, title="Theirs")
    assert refused_raw(await rename_reply(ann, agents, "Mine")) == raw(FORBIDDEN)
    stranger = await cast.person("stranger")
    assert refused_raw(await rename_reply(stranger, room, "Mine")) == raw(NOT_FOUND)


@pytest.mark.parametrize("title", ["", "  ", "x" * 121, "two\nlines", None, 7])
async def test_a_room_is_not_renamed_to_something_unfit(ann: Person, title: Any) -> None:
    room = await ann.open_room(title="Plans")
    refusal = refused_raw(await rename_reply(ann, room, title))
    assert refusal == raw(INVALID) and refusal.names("/chat/title")
    assert (await ann.rest.human_api_chats.get_my_chat_room(room)).data.title == "Plans"


async def test_a_deleted_room_is_gone_for_everyone(ann: Person, bot: Bot) -> None:
    room, kept = await ann.open_room(bot), await ann.open_room(bot)
    await ann.say(room, "never answered", bot)

    assert (await ann.raw.delete(f"/api/v1/me/chats/{room}")).status_code in (200, 204)

    assert await refused(ann.rest.human_api_chats.get_my_chat_room, room) == NOT_FOUND
    assert await refused(ann.rest.human_api_messages.list_my_chat_messages, room) == NOT_FOUND
    assert await refused(bot.rest.agent_api_messages.get_agent_next_message, room) == NOT_FOUND
    assert await rooms(ann, include="agent_rooms") == [kept]
    assert [one.id for one in (await bot.rest.agent_api_chats.list_agent_chats()).data] == [kept]
    assert refused_raw(await ann.raw.delete(f"/api/v1/me/chats/{room}")) == raw(NOT_FOUND)


async def test_who_may_delete_a_room(ann: Person, bot: Bot, cast: Cast) -> None:
    agents = await bot.open_room()
    assert (await ann.raw.delete(f"/api/v1/me/chats/{agents}")).status_code in (200, 204)

    bob = await cast.person("bob")
    bobs = await cast.bot(bob)
    room = await bobs.open_room(bob)
    assert refused_raw(await ann.raw.delete(f"/api/v1/me/chats/{room}")) == raw(NOT_FOUND)
    assert refused_raw(await ann.raw.delete(f"/api/v1/me/chats/{UNKNOWN_ID}")) == raw(NOT_FOUND)
    assert (await bob.raw.delete(f"/api/v1/me/chats/{room}")).status_code in (200, 204)


async def test_an_archived_room_is_read_only_until_it_comes_back(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    await ann.say(room, "before", bot)

    archived = await ann.raw.post(f"/api/v1/me/chats/{room}/archive")

    assert (archived.status_code, archived.json()["data"]["status"]) == (200, "archived")
    assert (await ann.rest.human_api_chats.get_my_chat_room(room)).data.status == "archived"
    assert len(await ann.texts(room)) == 1
    send = ann.rest.human_api_messages.send_my_chat_message
    assert await refused(send, room, message=message("after", bot)) == FORBIDDEN
    answer = bot.rest.agent_api_messages.create_agent_chat_message
    assert await refused(answer, room, message=message("after", ann)) == FORBIDDEN
    assert refused_raw(await rename_reply(ann, room, "Plans")) == raw(FORBIDDEN)

    back = await ann.raw.post(f"/api/v1/me/chats/{room}/unarchive")

    assert (back.status_code, back.json()["data"]["status"]) == (200, "active")
    await ann.say(room, "after", bot)


async def test_only_the_owner_archives(ann: Person, bot: Bot, cast: Cast) -> None:
    agents = await bot.open_room(ann)
    stranger = await cast.person("stranger")
    for change in ("archive", "unarchive"):
        assert refused_raw(await ann.raw.post(f"/api/v1/me/chats/{agents}/{change}")) == raw(FORBIDDEN)
        assert refused_raw(await stranger.raw.post(f"/api/v1/me/chats/{agents}/{change}")) == raw(NOT_FOUND)
