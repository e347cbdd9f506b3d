"""Who an agent is, and whom it can recruit."""

from __future__ import annotations

from band_rest.types import ParticipantRequest, Peer

from harness.cast import DESCRIPTION, Bot, Cast, Person
from harness.server import Server


async def test_an_agent_learns_who_it_is(ann: Person, cast: Cast) -> None:
    bot = await cast.bot(ann, "Weather Agent")

    me = (await bot.rest.agent_api_identity.get_agent_me()).data

    assert (me.id, me.name, me.description, me.owner_uuid) == (bot.id, "Weather Agent", DESCRIPTION, ann.id)
    assert me.handle == f"{ann.handle}/weather-agent"
    assert me.inserted_at <= me.updated_at
    assert {"ff_file_transfer", "ff_room_tasks"} <= me.feature_flags.keys()


async def test_two_agents_whose_names_make_one_slug_get_two_handles(ann: Person, cast: Cast) -> None:
    first, second = await cast.bot(ann, "Data Bot"), await cast.bot(ann, "data  bot")
    assert (first.handle, second.handle) == (f"{ann.handle}/data-bot", f"{ann.handle}/data-bot-2")


def summary(peer: Peer) -> tuple[str, str, str, str, bool]:
    return peer.id, peer.type, peer.handle, peer.source, peer.is_contact


async def test_peers_are_the_owner_and_the_siblings_and_never_oneself(ann: Person, bot: Bot, cast: Cast) -> None:
    sibling = await cast.bot(ann)
    stranger = await cast.bot(await cast.person("stranger"))

    peers = (await bot.rest.agent_api_peers.list_agent_peers(page_size=100)).data

    assert {
        (ann.id, "User", ann.handle, "registry", False),
        (sibling.id, "Agent", sibling.handle, "registry", False),
    } <= {summary(peer) for peer in peers}
    assert not {bot.id, stranger.id} & {peer.id for peer in peers}
    assert [peer.online for peer in peers if peer.id == sibling.id] == [False]


async def test_a_global_agent_is_everybodys_peer(own_server: Server) -> None:
    helper = own_server.add_agent("Helper", "--global")
    async with Cast(own_server) as cast:
        ann = await cast.person()
        bot = await cast.bot(ann)

        room = await bot.open_room()
        assert helper.id in {peer.id for peer in (await bot.rest.agent_api_peers.list_agent_peers()).data}
        assert helper.id in {peer.id for peer in (await ann.rest.human_api_peers.list_my_peers()).data}

        await bot.rest.agent_api_participants.add_agent_chat_participant(
            room, participant=ParticipantRequest(participant_id=helper.id)
        )
        members = (await bot.rest.agent_api_participants.list_agent_chat_participants(room)).data
        assert {member.id for member in members} == {bot.id, helper.id}


async def test_peers_already_in_a_room_can_be_left_out(ann: Person, bot: Bot, cast: Cast) -> None:
    inside, outside = await cast.bots(ann, 2)
    room = await bot.open_room(inside)

    peers = (await bot.rest.agent_api_peers.list_agent_peers(not_in_chat=room, page_size=100)).data

    ids = {peer.id for peer in peers}
    assert outside.id in ids and inside.id not in ids


async def test_peers_come_in_pages(ann: Person, bot: Bot, cast: Cast) -> None:
    await cast.bots(ann, 2)
    everyone = await bot.rest.agent_api_peers.list_agent_peers(page_size=100)
    total = everyone.metadata.total_count

    walked: list[str] = []
    for number in range(1, total + 1):
        page = await bot.rest.agent_api_peers.list_agent_peers(page=number, page_size=1)
        assert page.metadata.model_dump() == {
            "page": number,
            "page_size": 1,
            "total_count": total,
            "total_pages": total,
        }
        walked += [peer.id for peer in page.data]

    assert walked == [peer.id for peer in everyone.data]
    assert (await bot.rest.agent_api_peers.list_agent_peers(page=total + 1, page_size=1)).data == []
