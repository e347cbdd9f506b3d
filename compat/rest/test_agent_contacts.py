"""An agent's contacts: asking with and without an answer, both directions of every list, and what contacts open up."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import ParticipantRequest

from harness.cast import UNKNOWN_ID, Bot, Cast, Person
from harness.contacts import ask, befriend
from harness.refusals import (
    BAD_REQUEST,
    CONTACT_CONFLICT,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    Refusal,
    refused,
    untyped,
)


@pytest.fixture
async def bob(cast: Cast) -> Person:
    return await cast.person("bob")


@pytest.fixture
async def weather(bob: Person, cast: Cast) -> Bot:
    """Bob's agent, a stranger to Ann's."""
    return await cast.bot(bob, "Weather")


async def requests(bot: Bot, **query: Any) -> tuple[list[Any], list[Any]]:
    """What was received and what was sent."""
    data = (await bot.rest.agent_api_contacts.list_agent_contact_requests(**query)).data
    return data.received, data.sent


async def respond(bot: Bot, action: str, **which: str) -> tuple[str, str]:
    done = await bot.rest.agent_api_contacts.respond_to_agent_contact_request(action=action, **which)
    return done.data.id, done.data.status


async def respond_refused(bot: Bot, action: str, **which: str) -> Refusal:
    return await refused(bot.rest.agent_api_contacts.respond_to_agent_contact_request, action=action, **which)


async def contacts(bot: Bot) -> list[str]:
    """The handles of an agent's contacts."""
    return [row.handle for row in (await bot.rest.agent_api_contacts.list_agent_contacts()).data]


async def test_a_request_waits_on_both_sides(bot: Bot, weather: Bot) -> None:
    asked = (await bot.rest.agent_api_contacts.add_agent_contact(handle=weather.handle, message="Rain?")).data
    assert asked.status == "pending"

    received, sent = await requests(weather)
    assert sent == []
    (row,) = received
    assert (row.id, row.status, row.from_handle, row.from_name, row.message) == (
        asked.id,
        "pending",
        bot.handle,
        bot.name,
        "Rain?",
    )
    received, sent = await requests(bot)
    assert received == []
    (row,) = sent
    assert (row.id, row.status, row.to_handle, row.to_name, row.message) == (
        asked.id,
        "pending",
        weather.handle,
        weather.name,
        "Rain?",
    )
    assert row.inserted_at is not None
    assert await contacts(bot) == await contacts(weather) == []


@pytest.mark.parametrize("message", [{}, {"message": None}])
async def test_a_request_needs_no_message(bot: Bot, weather: Bot, message: dict[str, None]) -> None:
    reply = await bot.raw.post("/api/v1/agent/contacts/add", json={"handle": weather.handle, **message})
    assert reply.status_code == 201
    ((row,), _) = await requests(weather)
    assert row.message is None


async def test_a_handle_is_taken_with_an_at_sign_and_in_any_case(bot: Bot, weather: Bot) -> None:
    add = bot.rest.agent_api_contacts.add_agent_contact
    asked = (await add(handle=f"@{weather.handle.upper()}")).data
    assert await respond(bot, "cancel", handle=f"@{weather.handle}") == (asked.id, "cancelled")
    assert (await add(handle=weather.handle)).data.status == "pending"


@pytest.mark.parametrize("handle", ["", "@", "two words", "a/b/c", "/weather", "bob/"])
async def test_what_is_no_handle_is_a_bad_request(bot: Bot, handle: str) -> None:
    assert await refused(bot.rest.agent_api_contacts.add_agent_contact, handle=handle) == BAD_REQUEST


async def test_nobody_can_be_asked_who_does_not_exist(bot: Bot, weather: Bot) -> None:
    for handle in ("nobody-of-that-name", f"{weather.handle}-not", "nobody/weather"):
        assert await refused(bot.rest.agent_api_contacts.add_agent_contact, handle=handle) == NOT_FOUND


async def test_nobody_is_asked_in_vain(bot: Bot, weather: Bot) -> None:
    add = bot.rest.agent_api_contacts.add_agent_contact
    assert await refused(add, handle=bot.handle) == CONTACT_CONFLICT
    await add(handle=weather.handle)
    assert await refused(add, handle=weather.handle) == CONTACT_CONFLICT
    await respond(weather, "approve", handle=bot.handle)
    assert await refused(add, handle=weather.handle) == CONTACT_CONFLICT
    assert await refused(weather.rest.agent_api_contacts.add_agent_contact, handle=bot.handle) == CONTACT_CONFLICT


async def test_a_message_has_at_most_500_characters(bot: Bot, weather: Bot) -> None:
    add = bot.rest.agent_api_contacts.add_agent_contact
    refusal = await refused(add, handle=weather.handle, message="ü" * 501)
    assert refusal == untyped(INVALID) and refusal.names("/message")
    assert (await add(handle=weather.handle, message="ü" * 500)).data.status == "pending"


async def test_whoever_asks_back_consents(bot: Bot, weather: Bot) -> None:
    await ask(bot, weather)

    asked_back = (await weather.rest.agent_api_contacts.add_agent_contact(handle=bot.handle)).data

    assert asked_back.status == "approved"
    assert (await contacts(bot), await contacts(weather)) == ([weather.handle], [bot.handle])
    assert await requests(bot) == await requests(weather) == ([], [])


async def test_both_sides_see_a_contact_each_with_a_record_of_its_own(bot: Bot, weather: Bot) -> None:
    await befriend(bot, weather)

    ((mine,), (its,)) = [(await one.rest.agent_api_contacts.list_agent_contacts()).data for one in (bot, weather)]

    assert (mine.handle, mine.name, mine.type, mine.online) == (weather.handle, weather.name, "Agent", False)
    assert (its.handle, its.name, its.type, its.online) == (bot.handle, bot.name, "Agent", False)
    assert mine.description == its.description and mine.is_external is True
    assert len({mine.id, its.id, bot.id, weather.id}) == 4


async def test_a_person_can_be_asked_and_can_ask(bot: Bot, bob: Person) -> None:
    request = await ask(bob, bot)
    ((row,), _) = await requests(bot)
    assert (row.id, row.from_handle) == (request, bob.handle)

    assert await respond(bot, "approve", request_id=request) == (request, "approved")
    (contact,) = (await bot.rest.agent_api_contacts.list_agent_contacts()).data
    assert (contact.handle, contact.type) == (bob.handle, "User")


@pytest.mark.parametrize(("action", "status"), [("approve", "approved"), ("reject", "rejected")])
@pytest.mark.parametrize("by", ["handle", "request_id"])
async def test_the_one_who_was_asked_answers(bot: Bot, weather: Bot, action: str, status: str, by: str) -> None:
    request = await ask(bot, weather)

    done = await respond(weather, action, **({"handle": bot.handle} if by == "handle" else {"request_id": request}))

    assert done == (request, status)
    assert await contacts(bot) == ([weather.handle] if status == "approved" else [])
    assert await requests(weather, sent_status="all") == ([], [])
    assert [row.status for row in (await requests(bot, sent_status="all"))[1]] == [status]


@pytest.mark.parametrize("by", ["handle", "request_id"])
async def test_the_one_who_asked_takes_it_back(bot: Bot, weather: Bot, by: str) -> None:
    request = await ask(bot, weather)
    which = {"handle": weather.handle} if by == "handle" else {"request_id": request}
    assert await respond(bot, "cancel", **which) == (request, "cancelled")
    assert await requests(weather) == ([], [])


async def test_an_answer_needs_a_request(bot: Bot, weather: Bot, cast: Cast, bob: Person) -> None:
    assert await respond_refused(bot, "approve") == BAD_REQUEST
    assert await respond_refused(bot, "approve", handle="two words") == BAD_REQUEST
    for which in ({"handle": weather.handle}, {"handle": "nobody-of-that-name"}, {"request_id": UNKNOWN_ID}):
        for action in ("approve", "reject", "cancel"):
            assert await respond_refused(bot, action, **which) == NOT_FOUND
    # By its handle, a request of the wrong direction is no request.
    await ask(bot, weather)
    assert await respond_refused(weather, "cancel", handle=bot.handle) == NOT_FOUND
    assert await respond_refused(bot, "approve", handle=weather.handle) == NOT_FOUND
    # Somebody else's is none either.
    third = await cast.bot(bob)
    (_, (sent,)) = await requests(bot)
    assert await respond_refused(third, "approve", request_id=sent.id) == NOT_FOUND


async def test_each_side_has_its_own_answers(bot: Bot, weather: Bot) -> None:
    request = await ask(bot, weather)
    assert await respond_refused(bot, "approve", request_id=request) == FORBIDDEN
    assert await respond_refused(bot, "reject", request_id=request) == FORBIDDEN
    assert await respond_refused(weather, "cancel", request_id=request) == FORBIDDEN
    assert [row.status for row in (await requests(bot))[1]] == ["pending"]


@pytest.mark.parametrize("action", ["approve", "reject"])
async def test_an_answer_is_final(bot: Bot, weather: Bot, action: str) -> None:
    request = await ask(bot, weather)
    await respond(weather, action, request_id=request)
    for again in ("approve", "reject"):
        assert await respond_refused(weather, again, request_id=request) == CONTACT_CONFLICT
    assert await respond_refused(bot, "cancel", request_id=request) == CONTACT_CONFLICT


async def test_an_answer_is_one_of_three(bot: Bot, weather: Bot) -> None:
    request = await ask(bot, weather)
    refusal = await respond_refused(weather, "ignore", request_id=request)
    assert refusal == untyped(INVALID) and refusal.names("/action")


async def test_sent_requests_are_filtered_by_what_became_of_them(bot: Bot, bob: Person, cast: Cast) -> None:
    pending, approved, rejected, cancelled = peers = await cast.bots(bob, 4)
    for peer in peers:
        await ask(bot, peer)
    await respond(approved, "approve", handle=bot.handle)
    await respond(rejected, "reject", handle=bot.handle)
    await respond(bot, "cancel", handle=cancelled.handle)

    async def sent(**query: str) -> set[str | None]:
        return {row.to_handle for row in (await requests(bot, **query))[1]}

    assert await sent() == await sent(sent_status="pending") == {pending.handle}
    assert await sent(sent_status="approved") == {approved.handle}
    assert await sent(sent_status="rejected") == {rejected.handle}
    assert await sent(sent_status="cancelled") == {cancelled.handle}
    assert await sent(sent_status="all") == {peer.handle for peer in peers}
    refusal = await refused(bot.rest.agent_api_contacts.list_agent_contact_requests, sent_status="lost")
    assert refusal == untyped(INVALID) and refusal.names("/sent_status")


async def test_requests_are_paged_by_direction(bot: Bot, bob: Person, cast: Cast) -> None:
    askers = await cast.bots(bob, 3)
    asked = await cast.bot(bob)
    for asker in askers:
        await ask(asker, bot)
    await ask(bot, asked)

    pages = [
        await bot.rest.agent_api_contacts.list_agent_contact_requests(page=page, page_size=2) for page in (1, 2, 3)
    ]

    assert [(len(page.data.received), len(page.data.sent)) for page in pages] == [(2, 1), (1, 0), (0, 0)]
    walked = [row.from_handle for page in pages for row in page.data.received]
    assert sorted(walked) == sorted(asker.handle for asker in askers)
    metadata = pages[1].metadata
    assert (metadata.page, metadata.page_size) == (2, 2)
    assert (metadata.received.total, metadata.received.total_pages) == (3, 2)
    assert (metadata.sent.total, metadata.sent.total_pages) == (1, 1)


async def test_contacts_are_paged(bot: Bot, bob: Person, cast: Cast) -> None:
    peers = await cast.bots(bob, 3)
    for peer in peers:
        await befriend(peer, bot)

    first, second = [await bot.rest.agent_api_contacts.list_agent_contacts(page=page, page_size=2) for page in (1, 2)]

    assert (len(first.data), len(second.data)) == (2, 1)
    assert {row.handle for row in first.data + second.data} == {peer.handle for peer in peers}
    metadata = second.metadata
    assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (2, 2, 3, 2)
    default = (await bot.rest.agent_api_contacts.list_agent_contacts()).metadata
    assert (default.page, default.page_size, default.total_pages) == (1, 20, 1)
    most = (await bot.rest.agent_api_contacts.list_agent_contacts(page_size=101)).metadata
    assert most.page_size == 100
    for wrong in ({"page": 0}, {"page_size": 0}):
        refusal = await refused(bot.rest.agent_api_contacts.list_agent_contacts, **wrong)
        assert refusal == untyped(INVALID) and refusal.names("/" + next(iter(wrong)))


@pytest.mark.parametrize("by", ["handle", "@handle", "contact_id"])
async def test_one_removal_ends_both_directions(bot: Bot, weather: Bot, by: str) -> None:
    await befriend(bot, weather)
    (mine,) = (await bot.rest.agent_api_contacts.list_agent_contacts()).data
    spellings = {
        "handle": {"handle": weather.handle},
        "@handle": {"handle": f"@{weather.handle}"},
        "contact_id": {"contact_id": mine.id},
    }

    removed = (await bot.rest.agent_api_contacts.remove_agent_contact(**spellings[by])).data

    assert removed.status == "removed"
    assert await contacts(bot) == await contacts(weather) == []
    # They may find each other again.
    await befriend(weather, bot)
    assert await contacts(bot) == [weather.handle]


async def test_a_removal_needs_a_contact(bot: Bot, weather: Bot) -> None:
    remove = bot.rest.agent_api_contacts.remove_agent_contact
    assert await refused(remove) == BAD_REQUEST
    assert await refused(remove, handle="two words") == BAD_REQUEST
    await befriend(bot, weather)
    (its,) = (await weather.rest.agent_api_contacts.list_agent_contacts()).data
    for which in (
        {"handle": "nobody-of-that-name"},
        {"handle": bot.handle},
        {"contact_id": UNKNOWN_ID},
        # Of the two records only its own is an agent's to remove.
        {"contact_id": its.id},
    ):
        assert await refused(remove, **which) == NOT_FOUND
    assert await contacts(bot) == [weather.handle]


async def test_a_contact_is_a_peer_and_may_be_brought_into_a_room(bot: Bot, weather: Bot, ann: Person) -> None:
    room = await bot.open_room(ann)
    add = bot.rest.agent_api_participants.add_agent_chat_participant
    stranger = ParticipantRequest(participant_id=weather.id)
    assert weather.id not in {peer.id for peer in (await bot.rest.agent_api_peers.list_agent_peers()).data}
    assert await refused(add, room, participant=stranger) == FORBIDDEN

    await befriend(bot, weather)

    *registry, peer = (await bot.rest.agent_api_peers.list_agent_peers()).data
    assert (peer.id, peer.handle, peer.source, peer.is_contact) == (weather.id, weather.handle, "contact", True)
    assert all(row.source == "registry" and row.is_contact is False for row in registry)
    assert (await add(room, participant=stranger)).data.id == weather.id
    sent = await bot.say(room, "Rain?", weather)
    assert [recipient.id for recipient in sent.recipients] == [weather.id]
    # Whoever is in the room already is no candidate.
    candidates = (await bot.rest.agent_api_peers.list_agent_peers(not_in_chat=room)).data
    assert weather.id not in {row.id for row in candidates}


async def test_a_contact_that_is_removed_is_a_stranger_again(bot: Bot, weather: Bot, ann: Person) -> None:
    await befriend(bot, weather)
    await weather.rest.agent_api_contacts.remove_agent_contact(handle=bot.handle)
    room = await bot.open_room(ann)
    assert weather.id not in {peer.id for peer in (await bot.rest.agent_api_peers.list_agent_peers()).data}
    refusal = await refused(
        bot.rest.agent_api_participants.add_agent_chat_participant,
        room,
        participant=ParticipantRequest(participant_id=weather.id),
    )
    assert refusal == FORBIDDEN


async def test_a_sibling_may_be_a_contact_too(bot: Bot, ann: Person, cast: Cast) -> None:
    sibling = await cast.bot(ann)
    await befriend(bot, sibling)
    peers = {peer.id: peer for peer in (await bot.rest.agent_api_peers.list_agent_peers()).data}
    assert (peers[sibling.id].source, peers[sibling.id].is_contact) == ("registry", True)
    assert (peers[ann.id].source, peers[ann.id].is_contact) == ("registry", False)


async def test_a_contact_goes_with_its_agent(bot: Bot, weather: Bot, bob: Person) -> None:
    await befriend(bot, weather)
    await bob.rest.human_api_agents.delete_my_agent(weather.id, force=True)
    assert await contacts(bot) == []
