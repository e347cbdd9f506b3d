"""Who may bring whom into a room, and who may send whom out: the permission table, row by row."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import ParticipantRequest

from harness.cast import UNKNOWN_ID, Bot, Cast, Identity, Person
from harness.refusals import CONFLICT, FORBIDDEN, INVALID, NOT_FOUND, SOLE_OWNER, Refusal, refused


class Room:
    """A room with its owner, an admin and a member, all agents of one person, who is in it too."""

    def __init__(self, room: str, owner: Bot, admin: Bot, member: Bot) -> None:
        self.id, self.owner, self.admin, self.member = room, owner, admin, member


@pytest.fixture
async def room(ann: Person, bot: Bot, cast: Cast) -> Room:
    admin, member = await cast.bots(ann, 2)
    room = await bot.open_room(ann)
    await bot.add(room, admin, role="admin")
    await bot.add(room, member)
    return Room(room, bot, admin, member)


def wanted(who: str, role: str | None) -> ParticipantRequest:
    return ParticipantRequest(participant_id=who) if role is None else ParticipantRequest(participant_id=who, role=role)


async def add(caller: Bot, room: str, who: str, role: str | None = None) -> Any:
    return (
        await caller.rest.agent_api_participants.add_agent_chat_participant(room, participant=wanted(who, role))
    ).data


async def add_refused(caller: Bot, room: str, who: str, role: str | None = None) -> Refusal:
    return await refused(
        caller.rest.agent_api_participants.add_agent_chat_participant, room, participant=wanted(who, role)
    )


async def remove(caller: Bot, room: str, who: Identity) -> Any:
    return (await caller.rest.agent_api_participants.remove_agent_chat_participant(room, who.id)).data


async def remove_refused(caller: Bot, room: str, who: str) -> Refusal:
    return await refused(caller.rest.agent_api_participants.remove_agent_chat_participant, room, who)


async def members(caller: Bot, room: str) -> dict[str, str]:
    rows = (await caller.rest.agent_api_participants.list_agent_chat_participants(room)).data
    return {row.id: row.role for row in rows}


async def test_the_list_names_everyone_in_the_room(ann: Person, room: Room) -> None:
    rows = (await room.member.rest.agent_api_participants.list_agent_chat_participants(room.id)).data
    assert {(row.id, row.type, row.handle, row.role, row.status) for row in rows} == {
        (room.owner.id, "Agent", room.owner.handle, "owner", "inactive"),
        (room.admin.id, "Agent", room.admin.handle, "admin", "inactive"),
        (room.member.id, "Agent", room.member.handle, "member", "inactive"),
        (ann.id, "User", ann.handle, "member", "active"),
    }
    assert {row.name for row in rows if row.type == "Agent"} == {room.owner.name, room.admin.name, room.member.name}


@pytest.mark.parametrize("role", [None, "member", "admin", "owner"])
async def test_the_owner_adds_a_sibling_in_any_role(ann: Person, room: Room, cast: Cast, role: str | None) -> None:
    sibling = await cast.bot(ann)

    added = await add(room.owner, room.id, sibling.id, role)

    assert (added.id, added.type, added.name, added.handle, added.role, added.status) == (
        sibling.id,
        "Agent",
        sibling.name,
        sibling.handle,
        role or "member",
        "inactive",
    )
    assert (await members(sibling, room.id))[sibling.id] == (role or "member")


async def test_an_agent_adds_its_owner(ann: Person, bot: Bot) -> None:
    room = await bot.open_room()
    added = await add(bot, room, ann.id)
    assert (added.id, added.type, added.handle, added.role, added.status) == (
        ann.id,
        "User",
        ann.handle,
        "member",
        "active",
    )


@pytest.mark.parametrize("caller", ["owner", "admin", "member"])
async def test_everyone_in_the_room_may_add_a_member(ann: Person, room: Room, cast: Cast, caller: str) -> None:
    sibling = await cast.bot(ann)
    await add(getattr(room, caller), room.id, sibling.id)
    assert (await members(room.owner, room.id))[sibling.id] == "member"


@pytest.mark.parametrize("caller", ["admin", "member"])
@pytest.mark.parametrize("role", ["admin", "owner"])
async def test_only_an_owner_grants_more_than_member(
    ann: Person, room: Room, cast: Cast, caller: str, role: str
) -> None:
    sibling = await cast.bot(ann)
    assert await add_refused(getattr(room, caller), room.id, sibling.id, role) == FORBIDDEN
    assert sibling.id not in await members(room.owner, room.id)


async def test_the_right_to_grant_is_asked_before_the_duplicate(room: Room) -> None:
    assert await add_refused(room.member, room.id, room.member.id, "admin") == FORBIDDEN
    assert (await members(room.owner, room.id))[room.member.id] == "member"


async def test_nobody_is_added_twice(ann: Person, room: Room) -> None:
    before = await members(room.owner, room.id)
    for present in (room.owner.id, room.admin.id, room.member.id, ann.id):
        assert await add_refused(room.owner, room.id, present) == CONFLICT
    assert await members(room.owner, room.id) == before


async def test_an_outsider_adds_nobody_not_even_itself(ann: Person, room: Room, cast: Cast) -> None:
    outsider = await cast.bot(ann)
    assert await add_refused(outsider, room.id, outsider.id) == NOT_FOUND

    await remove(room.member, room.id, room.member)
    assert await add_refused(room.member, room.id, room.member.id) == NOT_FOUND


async def test_an_unknown_entity_is_not_found(room: Room) -> None:
    assert await add_refused(room.owner, room.id, UNKNOWN_ID) == NOT_FOUND


async def test_a_strangers_agent_is_no_peer(room: Room, cast: Cast) -> None:
    stranger = await cast.bot(await cast.person("stranger"))
    assert await add_refused(room.owner, room.id, stranger.id) == FORBIDDEN


async def test_an_id_or_role_that_is_none_is_refused_by_name(ann: Person, room: Room, cast: Cast) -> None:
    not_an_id = await add_refused(room.owner, room.id, "somebody")
    assert not_an_id == INVALID and not_an_id.names("/participant/participant_id")
    not_a_role = await add_refused(room.owner, room.id, (await cast.bot(ann)).id, "king")
    assert not_a_role == INVALID and not_a_role.names("/participant/role")


@pytest.mark.parametrize("target", ["admin", "member"])
async def test_the_owner_sends_agents_out(room: Room, target: str) -> None:
    agent = getattr(room, target)

    removed = await remove(room.owner, room.id, agent)

    assert (removed.id, removed.role) == (agent.id, target)
    assert agent.id not in await members(room.owner, room.id)
    assert await refused(agent.rest.agent_api_chats.get_agent_chat, room.id) == NOT_FOUND


@pytest.mark.parametrize("leaver", ["admin", "member"])
async def test_whoever_does_not_own_the_room_may_leave_it(room: Room, leaver: str) -> None:
    agent = getattr(room, leaver)
    assert (await remove(agent, room.id, agent)).id == agent.id
    assert agent.id not in await members(room.owner, room.id)


async def test_an_admin_sends_a_member_out_but_no_admin(ann: Person, room: Room, cast: Cast) -> None:
    peer = await cast.bot(ann)
    await room.owner.add(room.id, peer, role="admin")

    assert await remove_refused(room.admin, room.id, peer.id) == FORBIDDEN
    assert (await remove(room.admin, room.id, room.member)).id == room.member.id


@pytest.mark.parametrize("caller", ["admin", "member"])
async def test_nobody_sends_the_owner_out(room: Room, caller: str) -> None:
    assert await remove_refused(getattr(room, caller), room.id, room.owner.id) == FORBIDDEN


@pytest.mark.parametrize("caller", ["owner", "admin", "member"])
async def test_an_agent_never_sends_a_person_out(ann: Person, room: Room, caller: str) -> None:
    assert await remove_refused(getattr(room, caller), room.id, ann.id) == FORBIDDEN
    assert ann.id in await members(room.owner, room.id)


async def test_the_sole_owner_stays(ann: Person, room: Room, cast: Cast) -> None:
    assert await remove_refused(room.owner, room.id, room.owner.id) == SOLE_OWNER

    heir = await cast.bot(ann)
    await room.owner.add(room.id, heir, role="owner")
    assert (await remove(room.owner, room.id, room.owner)).role == "owner"
    assert room.owner.id not in await members(heir, room.id)


async def test_whoever_is_not_in_the_room_cannot_be_sent_out(room: Room) -> None:
    for nobody in (UNKNOWN_ID, "nobody"):
        assert await remove_refused(room.owner, room.id, nobody) == NOT_FOUND


async def test_coming_back_does_not_revive_what_was_missed(ann: Person, room: Room) -> None:
    await ann.say(room.id, "for the member", room.member)
    await remove(room.owner, room.id, room.member)
    await room.owner.add(room.id, room.member)
    assert await room.member.next(room.id) is None
