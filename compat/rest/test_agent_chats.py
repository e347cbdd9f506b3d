"""Rooms, as an agent creates, lists, reads and renames them."""

from __future__ import annotations

import pytest
from band_rest.agent_api_chats.types import RenameAgentChatRequestChat
from band_rest.types import ChatRoomRequest

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, token
from harness.refusals import FORBIDDEN, INVALID, refused, refused_raw, untyped


def renamed(title: str) -> RenameAgentChatRequestChat:
    return RenameAgentChatRequestChat(title=title)


async def test_a_room_belongs_to_the_agent_that_created_it(bot: Bot) -> None:
    room = (await bot.rest.agent_api_chats.create_agent_chat(chat=ChatRoomRequest(title="  Plans "))).data

    assert (room.title, room.task_id) == ("Plans", None)
    assert (await bot.rest.agent_api_chats.get_agent_chat(room.id)).data == room
    members = (await bot.rest.agent_api_participants.list_agent_chat_participants(room.id)).data
    assert [(one.id, one.type, one.role, one.status, one.name, one.handle) for one in members] == [
        (bot.id, "Agent", "owner", "inactive", bot.name, bot.handle)
    ]


async def test_a_room_without_a_title_takes_its_first_words(bot: Bot, ann: Person) -> None:
    for body in ({}, {"chat": {}}, {"chat": {"title": None, "task_id": None}}, {"chat": {"title": "   "}}):
        created = await bot.raw.post("/api/v1/agent/chats", json=body)
        assert (created.status_code, created.json()["data"].get("title")) == (201, None), body

    room = created.json()["data"]["id"]
    await bot.add(room, ann)
    await bot.say(room, f"{token(ann)} Plan the launch", ann)
    await bot.say(room, "and the landing", ann)

    assert (await bot.rest.agent_api_chats.get_agent_chat(room)).data.title == "Plan the launch"


async def test_a_given_title_stays(bot: Bot, ann: Person) -> None:
    room = await bot.open_room(ann, title="Plans")
    await bot.say(room, "Something else", ann)
    assert (await bot.rest.agent_api_chats.get_agent_chat(room)).data.title == "Plans"


async def test_a_task_link_is_kept_and_not_looked_up(bot: Bot) -> None:
    room = (await bot.rest.agent_api_chats.create_agent_chat(chat=ChatRoomRequest(task_id=UNKNOWN_ID))).data
    assert room.task_id == UNKNOWN_ID
    assert (await bot.rest.agent_api_chats.get_agent_chat(room.id)).data == room


@pytest.mark.parametrize("title", ["x" * 121, "two\nlines", "carriage\rreturn", "nul\0"])
async def test_a_title_that_cannot_be_shown_is_refused(bot: Bot, title: str) -> None:
    refusal = await refused(bot.rest.agent_api_chats.create_agent_chat, chat=ChatRoomRequest(title=title))
    assert refusal == INVALID and refusal.names("/chat/title")

    room = await bot.open_room(title="Plans")
    refusal = await refused(bot.rest.agent_api_chats.rename_agent_chat, room, chat=renamed(title))
    assert refusal == INVALID and refusal.names("/chat/title")
    assert (await bot.rest.agent_api_chats.get_agent_chat(room)).data.title == "Plans"


async def test_a_task_link_that_is_no_id_is_refused(bot: Bot) -> None:
    refusal = await refused(bot.rest.agent_api_chats.create_agent_chat, chat=ChatRoomRequest(task_id="task one"))
    assert refusal == INVALID and refusal.names("/chat/task_id")


async def test_only_the_owner_renames_a_room(ann: Person, bot: Bot, cast: Cast) -> None:
    admin, member = await cast.bots(ann, 2)
    room = await bot.open_room(title="Plans")
    await bot.add(room, admin, role="admin")
    await bot.add(room, member)

    for participant in (admin, member):
        assert (
            await refused(participant.rest.agent_api_chats.rename_agent_chat, room, chat=renamed("Mine")) == FORBIDDEN
        )

    changed = (await bot.rest.agent_api_chats.rename_agent_chat(room, chat=renamed(" Launch "))).data
    assert changed.title == "Launch"
    assert (await bot.rest.agent_api_chats.rename_agent_chat(room, chat=renamed("Launch"))).data == changed
    assert (await bot.rest.agent_api_chats.get_agent_chat(room)).data == changed


@pytest.mark.parametrize("title", ["", "   "])
async def test_a_room_is_not_renamed_to_nothing(bot: Bot, title: str) -> None:
    room = await bot.open_room(title="Plans")
    refusal = await refused(bot.rest.agent_api_chats.rename_agent_chat, room, chat=renamed(title))
    assert refusal == INVALID and refusal.names("/chat/title")


async def test_an_agent_lists_the_rooms_it_is_in_oldest_first(ann: Person, bot: Bot, cast: Cast) -> None:
    other = await cast.bot(ann)
    rooms = [await bot.open_room(title="One"), await other.open_room(bot, title="Two"), await ann.open_room(bot)]
    elsewhere = await other.open_room()

    listed = await bot.rest.agent_api_chats.list_agent_chats()

    assert [room.id for room in listed.data] == rooms
    assert elsewhere not in rooms
    assert listed.metadata.model_dump() == {"page": 1, "page_size": 20, "total_count": 3, "total_pages": 1}


async def test_the_rooms_of_an_agent_come_in_pages(bot: Bot) -> None:
    rooms = [await bot.open_room() for _ in range(3)]

    walked = []
    for number in (1, 2):
        page = await bot.rest.agent_api_chats.list_agent_chats(page=number, page_size=2)
        assert page.metadata.model_dump() == {"page": number, "page_size": 2, "total_count": 3, "total_pages": 2}
        walked += [room.id for room in page.data]

    assert walked == rooms


async def test_a_room_that_was_left_is_gone_from_the_list(ann: Person, bot: Bot, cast: Cast) -> None:
    other = await cast.bot(ann)
    left, stayed = await other.open_room(bot), await other.open_room(bot)

    await bot.rest.agent_api_participants.remove_agent_chat_participant(left, bot.id)

    assert [room.id for room in (await bot.rest.agent_api_chats.list_agent_chats()).data] == [stayed]


async def test_a_page_out_of_range_is_refused_and_a_large_one_is_cut(bot: Bot) -> None:
    for parameter, value in (("page", 0), ("page_size", 0)):
        refusal = await refused(bot.rest.agent_api_chats.list_agent_chats, **{parameter: value})
        assert refusal == untyped(INVALID) and refusal.names(f"/{parameter}")
    assert (await bot.rest.agent_api_chats.list_agent_chats(page_size=1000)).metadata.page_size == 100


async def test_participants_are_included_on_request_only(ann: Person, bot: Bot) -> None:
    room = await bot.open_room(ann)

    plain = (await bot.raw.get("/api/v1/agent/chats")).json()["data"][0]
    assert not {"participants", "participant_count", "participants_truncated"} & plain.keys()

    row = (await bot.raw.get("/api/v1/agent/chats", params={"include": "participants"})).json()["data"][0]
    assert (row["id"], row["participant_count"], row["participants_truncated"]) == (room, 2, False)
    assert {(one["id"], one["role"]) for one in row["participants"]} == {(bot.id, "owner"), (ann.id, "member")}


async def test_an_unknown_include_is_refused_by_its_place(bot: Bot) -> None:
    reply = await bot.raw.get("/api/v1/agent/chats", params={"include": "participants,secrets"})
    refusal = refused_raw(reply)
    assert (refusal.status, refusal.code) == (422, "validation_error")
    assert refusal.names("/include/1")
