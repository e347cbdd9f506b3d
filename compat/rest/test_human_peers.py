"""Whom a person can bring into a room."""

from __future__ import annotations

from harness.cast import Bot, Cast, Person
from harness.refusals import refused


async def test_a_person_sees_their_own_agents(ann: Person, bot: Bot, cast: Cast) -> None:
    stranger = await cast.bot(await cast.person("stranger"))

    peers = {peer.id: peer for peer in (await ann.rest.human_api_peers.list_my_peers(page_size=100)).data}

    mine = peers[bot.id]
    assert (mine.name, mine.type, mine.handle, mine.source) == (bot.name, "Agent", bot.handle, "registry")
    assert (mine.is_contact, mine.online, mine.is_external) == (False, False, True)
    assert stranger.id not in peers and ann.id not in peers


async def test_peers_can_be_narrowed(ann: Person, bot: Bot, cast: Cast) -> None:
    inside = await cast.bot(ann)
    room = await ann.open_room(inside)
    list_peers = ann.rest.human_api_peers.list_my_peers

    assert {peer.type for peer in (await list_peers(type="Agent", page_size=100)).data} == {"Agent"}
    assert bot.id not in {peer.id for peer in (await list_peers(type="User", page_size=100)).data}
    free = {peer.id for peer in (await list_peers(not_in_chat=room, page_size=100)).data}
    assert bot.id in free and inside.id not in free


async def test_peers_come_in_pages(ann: Person, cast: Cast) -> None:
    mine = await cast.bots(ann, 3)
    everyone = await ann.rest.human_api_peers.list_my_peers(type="Agent", page_size=100)
    total = everyone.metadata.total_count

    walked: list[str] = []
    for number in range(1, total + 1):
        page = await ann.rest.human_api_peers.list_my_peers(type="Agent", page=number, page_size=1)
        assert page.metadata.model_dump() == {
            "page": number,
            "page_size": 1,
            "total_count": total,
            "total_pages": total,
        }
        walked += [peer.id for peer in page.data]

    assert walked == [peer.id for peer in everyone.data]
    assert {bot.id for bot in mine} <= set(walked)


async def test_a_type_that_is_none_is_refused(ann: Person) -> None:
    refusal = await refused(ann.rest.human_api_peers.list_my_peers, type="Robot")
    assert (refusal.status, refusal.code) == (422, "validation_error") and refusal.names("/type")
