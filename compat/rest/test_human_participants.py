"""Who is in a person's room, and who brings them in or sends them out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from band_rest.types import ParticipantRequest

from harness.cast import UNKNOWN_ID, Bot, Cast, Identity, Person
from harness.refusals import CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, SOLE_OWNER, Refusal, refused, untyped


async def listed(person: Person, room: str, **query: Any) -> list[str]:
    page = await person.rest.human_api_participants.list_my_chat_participants(room, **query)
    return [row.id for row in page.data]


async def add_refused(person: Person, room: str, who: str, **role: str) -> Refusal:
    return await refused(
        person.rest.human_api_participants.add_my_chat_participant,
        room,
        participant=ParticipantRequest(participant_id=who, **role),
    )


async def remove_refused(person: Person, room: str, who: Identity) -> Refusal:
    return await refused(person.rest.human_api_participants.remove_my_chat_participant, room, who.id)


async def test_rows_tell_people_from_agents(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    page = await ann.rest.human_api_participants.list_my_chat_participants(room)
    rows = {row.id: row for row in page.data}

    me, agent = rows[ann.id], rows[bot.id]
    assert (me.type, me.role, me.status, me.handle) == ("User", "owner", "active", ann.handle)
    assert "connection_status" in me.model_fields_set and me.connection_status is None
    assert (agent.type, agent.role, agent.status, agent.name) == ("Agent", "member", "inactive", bot.name)
    assert (agent.handle, agent.is_external, agent.connection_status) == (bot.handle, True, "disconnected")
    assert (page.metadata.has_more, page.metadata.limit, page.metadata.next_cursor) == (False, 20, None)


async def test_people_and_agents_are_listed_apart_on_request(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    assert await listed(ann, room, participant_type="User") == [ann.id]
    assert await listed(ann, room, participant_type="Agent") == [bot.id]
    # This list declares no 422, so the refusal arrives untyped.
    refusal = await refused(ann.rest.human_api_participants.list_my_chat_participants, room, participant_type="Robot")
    assert refusal == untyped(INVALID) and refusal.names("/participant_type")


async def test_participants_come_in_pages_of_both_kinds(ann: Person, cast: Cast) -> None:
    room = await ann.open_room(*await cast.bots(ann, 4))
    everyone = await listed(ann, room)
    assert len(everyone) == 5

    by_cursor: list[str] = []
    cursor = None
    while True:
        page = await ann.rest.human_api_participants.list_my_chat_participants(room, limit=2, cursor=cursor)
        by_cursor += [row.id for row in page.data]
        cursor = page.metadata.next_cursor
        if cursor is None:
            break
    assert by_cursor == everyone

    by_number: list[str] = []
    for number in (1, 2, 3):
        page = await ann.rest.human_api_participants.list_my_chat_participants(room, page=number, page_size=2)
        metadata = page.metadata
        assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (number, 2, 5, 3)
        by_number += [row.id for row in page.data]
    assert by_number == everyone


@pytest.mark.parametrize("role", ["member", "admin", "owner"])
async def test_a_person_adds_their_agent_in_any_role(ann: Person, bot: Bot, role: str) -> None:
    room = await ann.open_room()
    added = await ann.rest.human_api_participants.add_my_chat_participant(
        room, participant=ParticipantRequest(participant_id=bot.id, role=role)
    )
    row = added.data
    assert (row.id, row.type, row.role, row.status, row.name) == (bot.id, "Agent", role, "inactive", bot.name)


async def test_many_added_at_once_all_arrive(ann: Person, cast: Cast) -> None:
    bots = await cast.bots(ann, 8)
    room = await ann.open_room()
    await asyncio.gather(*(ann.add(room, bot) for bot in bots))
    assert set(await listed(ann, room)) == {ann.id, *(bot.id for bot in bots)}


async def test_who_cannot_be_added(ann: Person, bot: Bot, cast: Cast) -> None:
    room = await ann.open_room(bot)
    stranger = await cast.bot(await cast.person("stranger"))

    assert await add_refused(ann, room, bot.id) == CONFLICT
    assert await add_refused(ann, room, UNKNOWN_ID) == NOT_FOUND
    assert await add_refused(ann, room, stranger.id) == FORBIDDEN
    not_an_id = await add_refused(ann, room, "somebody")
    assert not_an_id == INVALID and not_an_id.names("/participant/participant_id")
    not_a_role = await add_refused(ann, room, (await cast.bot(ann)).id, role="king")
    assert not_a_role == INVALID and not_a_role.names("/participant/role")
    assert set(await listed(ann, room)) == {ann.id, bot.id}


async def test_a_member_grants_no_roles_and_sends_nobody_out(ann: Person, bot: Bot, cast: Cast) -> None:
    sibling, late = await cast.bots(ann, 2)
    room = await bot.open_room(ann, sibling)

    assert await add_refused(ann, room, late.id, role="admin") == FORBIDDEN
    await ann.add(room, late)
    assert await remove_refused(ann, room, sibling) == FORBIDDEN
    assert set(await listed(ann, room)) == {ann.id, bot.id, sibling.id, late.id}


async def test_the_owner_sends_out_and_the_room_closes_for_them(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    removed = (await ann.rest.human_api_participants.remove_my_chat_participant(room, bot.id)).data
    assert (removed.id, removed.role) == (bot.id, "member")
    assert await listed(ann, room) == [ann.id]
    assert await refused(bot.rest.agent_api_chats.get_agent_chat, room) == NOT_FOUND
    assert await remove_refused(ann, room, bot) == NOT_FOUND


async def test_an_admin_sends_out_members_only(ann: Person, bot: Bot, cast: Cast) -> None:
    admin, member = await cast.bots(ann, 2)
    room = await bot.open_room(admin, member)
    await bot.add(room, ann, role="owner")
    # Ann steps down to admin by having the agent add her anew.
    await ann.rest.human_api_participants.remove_my_chat_participant(room, ann.id)
    await bot.add(room, ann, role="admin")

    assert await remove_refused(ann, room, bot) == FORBIDDEN
    assert (await ann.rest.human_api_participants.remove_my_chat_participant(room, member.id)).data.id == member.id


async def test_the_sole_owner_stays_and_others_may_leave(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    assert await remove_refused(ann, room, ann) == SOLE_OWNER

    agents = await bot.open_room(ann)
    assert (await ann.rest.human_api_participants.remove_my_chat_participant(agents, ann.id)).data.id == ann.id
    # A person goes on reading where their agent is.
    assert await listed(ann, agents) == [bot.id]
