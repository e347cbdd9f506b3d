"""A person's contacts: looking somebody up, asking, answering, and what contacts learn of each other."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import ContactRequest, ParticipantRequest

from harness.cast import UNKNOWN_ID, Bot, Cast, Identity, Person
from harness.contacts import ask, befriend, wish
from harness.refusals import (
    BAD_REQUEST,
    CONTACT_CONFLICT,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    Refusal,
    refused,
    refused_raw,
    untyped,
)


@pytest.fixture
async def bob(cast: Cast) -> Person:
    return await cast.person("bob")


async def request(who: Person, whom: Identity, message: str | None = None) -> ContactRequest:
    made = await who.rest.human_api_contacts.create_contact_request(contact_request=wish(whom.handle, message))
    return made.data


async def request_refused(who: Person, handle: str, message: str | None = None) -> Refusal:
    return await refused(who.rest.human_api_contacts.create_contact_request, contact_request=wish(handle, message))


async def received(who: Person) -> list[ContactRequest]:
    return (await who.rest.human_api_contacts.list_received_contact_requests()).data


async def sent(who: Person, **query: Any) -> list[ContactRequest]:
    return (await who.rest.human_api_contacts.list_sent_contact_requests(**query)).data


async def contacts(who: Person) -> set[str]:
    """Who somebody's contacts are."""
    return {row.contact_id for row in (await who.rest.human_api_contacts.list_my_contacts()).data}


async def test_a_handle_resolves_to_who_it_is_and_no_more(ann: Person, bob: Person, cast: Cast) -> None:
    weather = await cast.bot(bob, "Weather")
    resolve = ann.rest.human_api_contacts.resolve_handle
    for spelling in (bob.handle, f"@{bob.handle}", f"@{bob.handle.upper()}"):
        found = (await resolve(handle=spelling)).data
        assert (found.type, found.handle) == ("User", bob.handle)
    found = (await resolve(handle=f"@{weather.handle}")).data
    assert (found.type, found.handle, found.name) == ("Agent", weather.handle, "Weather")

    # Before there is consent, neither an id nor an address.
    reply = await ann.raw.post("/api/v1/me/contacts/resolve", json={"handle": bob.handle})
    assert reply.json()["data"].keys() == {"type", "name", "handle"}


@pytest.mark.parametrize("handle", ["", "@", "two words", "a/b/c"])
async def test_what_is_no_handle_is_a_bad_request(ann: Person, handle: str) -> None:
    assert await refused(ann.rest.human_api_contacts.resolve_handle, handle=handle) == BAD_REQUEST
    assert await request_refused(ann, handle) == BAD_REQUEST


async def test_a_handle_that_nobody_has_is_not_found(ann: Person, bob: Person) -> None:
    for handle in ("nobody-of-that-name", f"{bob.handle}/weather"):
        assert await refused(ann.rest.human_api_contacts.resolve_handle, handle=handle) == NOT_FOUND
        assert await request_refused(ann, handle) == NOT_FOUND


async def test_a_request_shows_on_both_sides(ann: Person, bob: Person) -> None:
    made = await request(ann, bob, "We met in Graz")

    assert (made.status, made.message, made.responded_at) == ("pending", "We met in Graz", None)
    assert (made.requester_id, made.requester_type) == (ann.id, "User")
    assert (made.recipient_id, made.recipient_type) == (bob.id, "User")
    assert (made.requester.id, made.requester.handle) == (ann.id, ann.handle)
    assert (made.recipient.id, made.recipient.handle) == (bob.id, bob.handle)
    assert await received(bob) == await sent(ann) == [made]
    assert await received(ann) == await sent(bob) == []


async def test_an_agent_can_be_asked_and_can_ask(ann: Person, bob: Person, cast: Cast) -> None:
    weather = await cast.bot(bob, "Weather")
    made = await request(ann, weather)
    assert (made.recipient_id, made.recipient_type, made.recipient.handle) == (weather.id, "Agent", weather.handle)
    assert made.recipient.name == "Weather" and made.message is None

    other = await cast.bot(bob, "Other")
    asked = await ask(other, ann)
    (row,) = await received(ann)
    assert (row.id, row.requester_id, row.requester_type, row.requester.handle) == (
        asked,
        other.id,
        "Agent",
        other.handle,
    )


async def test_nobody_is_asked_in_vain(ann: Person, bob: Person) -> None:
    assert await request_refused(ann, ann.handle) == CONTACT_CONFLICT
    await request(ann, bob)
    assert await request_refused(ann, bob.handle) == CONTACT_CONFLICT
    (row,) = await received(bob)
    await bob.rest.human_api_contacts.approve_contact_request(row.id)
    assert await request_refused(ann, bob.handle) == CONTACT_CONFLICT
    assert await request_refused(bob, ann.handle) == CONTACT_CONFLICT


async def test_a_message_has_at_most_500_characters(ann: Person, bob: Person) -> None:
    refusal = await request_refused(ann, bob.handle, "x" * 501)
    assert refusal == INVALID and refusal.names("/contact_request/message")
    assert (await request(ann, bob, "x" * 500)).message == "x" * 500


async def test_whoever_asks_back_consents(ann: Person, bob: Person) -> None:
    await request(ann, bob)
    asked_back = await request(bob, ann)
    assert asked_back.status == "approved" and asked_back.responded_at is not None
    assert (await contacts(ann), await contacts(bob)) == ({bob.id}, {ann.id})
    assert await received(ann) == await received(bob) == []


@pytest.mark.parametrize(("answer", "status"), [("approve", "approved"), ("reject", "rejected")])
async def test_the_one_who_was_asked_answers(ann: Person, bob: Person, answer: str, status: str) -> None:
    made = await request(ann, bob)

    done = (await getattr(bob.rest.human_api_contacts, f"{answer}_contact_request")(made.id)).data

    assert (done.id, done.status) == (made.id, status)
    assert await received(bob) == []
    (row,) = await sent(ann)
    assert (row.id, row.status) == (made.id, status) and row.responded_at >= row.inserted_at
    assert (await contacts(ann), await contacts(bob)) == (
        ({bob.id}, {ann.id}) if status == "approved" else (set(), set())
    )


async def test_the_one_who_asked_takes_it_back(ann: Person, bob: Person) -> None:
    made = await request(ann, bob)
    done = (await ann.rest.human_api_contacts.cancel_contact_request(made.id)).data
    assert (done.id, done.status) == (made.id, "cancelled")
    assert await received(bob) == []
    assert [row.status for row in await sent(ann)] == ["cancelled"]
    # And may ask again.
    assert (await request(ann, bob)).status == "pending"


async def test_each_side_has_its_own_answers(ann: Person, bob: Person, cast: Cast) -> None:
    made = await request(ann, bob)
    mine, his = ann.rest.human_api_contacts, bob.rest.human_api_contacts
    assert await refused(mine.approve_contact_request, made.id) == FORBIDDEN
    assert await refused(mine.reject_contact_request, made.id) == FORBIDDEN
    assert await refused(his.cancel_contact_request, made.id) == FORBIDDEN
    third = (await cast.person("third")).rest.human_api_contacts
    for answer in (third.approve_contact_request, third.reject_contact_request, third.cancel_contact_request):
        assert await refused(answer, made.id) == NOT_FOUND
    assert [row.status for row in await sent(ann)] == ["pending"]


@pytest.mark.parametrize("answer", ["approve", "reject"])
async def test_an_answer_is_final(ann: Person, bob: Person, answer: str) -> None:
    made = await request(ann, bob)
    mine, his = ann.rest.human_api_contacts, bob.rest.human_api_contacts
    await getattr(his, f"{answer}_contact_request")(made.id)
    for again in (his.approve_contact_request, his.reject_contact_request, mine.cancel_contact_request):
        assert await refused(again, made.id) == CONTACT_CONFLICT


@pytest.mark.parametrize("answer", ["approve", "reject", "cancel"])
async def test_a_request_that_does_not_exist_is_not_found(ann: Person, answer: str) -> None:
    method = getattr(ann.rest.human_api_contacts, f"{answer}_contact_request")
    assert await refused(method, UNKNOWN_ID) == NOT_FOUND
    # Of a malformed id the sources say both.
    assert (await refused(method, "not-an-id")).status in (404, 422)


async def test_sent_requests_are_filtered_by_what_became_of_them(ann: Person, bob: Person, cast: Cast) -> None:
    pending, approved, rejected, cancelled = peers = await cast.bots(bob, 4)
    made = {peer.id: (await request(ann, peer)).id for peer in peers}
    for peer, answer in ((approved, "approve"), (rejected, "reject")):
        await peer.rest.agent_api_contacts.respond_to_agent_contact_request(action=answer, handle=ann.handle)
    await ann.rest.human_api_contacts.cancel_contact_request(made[cancelled.id])

    async def by(status: str | None) -> set[str]:
        query = {} if status is None else {"status": status}
        return {row.recipient_id for row in await sent(ann, **query)}

    assert await by(None) == await by("all") == made.keys()
    assert await by("pending") == {pending.id}
    assert await by("approved") == {approved.id}
    assert await by("rejected") == {rejected.id}
    assert await by("cancelled") == {cancelled.id}
    refusal = await refused(ann.rest.human_api_contacts.list_sent_contact_requests, status="lost")
    assert refusal == untyped(INVALID) and refusal.names("/status")


async def test_all_three_lists_are_paged(ann: Person, bob: Person, cast: Cast) -> None:
    friends, askers, asked = [await cast.bots(bob, 3) for _ in range(3)]
    for friend in friends:
        await befriend(friend, ann)
    for asker in askers:
        await ask(asker, ann)
    for one in asked:
        await ask(ann, one)
    mine = ann.rest.human_api_contacts

    for method, query, key, everyone in (
        (mine.list_my_contacts, {}, "contact_id", friends),
        (mine.list_received_contact_requests, {}, "requester_id", askers),
        (mine.list_sent_contact_requests, {"status": "pending"}, "recipient_id", asked),
    ):
        first, second = [await method(page=page, page_size=2, **query) for page in (1, 2)]
        assert (len(first.data), len(second.data)) == (2, 1)
        assert {getattr(row, key) for row in first.data + second.data} == {one.id for one in everyone}
        metadata = second.metadata
        assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (2, 2, 3, 2)
        default = (await method(**query)).metadata
        assert (default.page, default.page_size) == (1, 20)
        refusal = await refused(method, page=0, **query)
        assert refusal == untyped(INVALID) and refusal.names("/page")


async def test_contacts_learn_of_each_other_what_strangers_do_not(ann: Person, bob: Person, cast: Cast) -> None:
    weather = await cast.bot(bob, "Weather")
    await befriend(ann, bob)
    await befriend(ann, weather)

    rows = {row.contact_id: row for row in (await ann.rest.human_api_contacts.list_my_contacts()).data}

    person, agent = rows[bob.id], rows[weather.id]
    email = (await bob.rest.human_api_profile.get_my_profile()).data.email
    assert (person.contact_type, person.status, person.source, person.online) == ("User", "active", "request", False)
    assert (person.user.id, person.user.handle, person.user.email) == (bob.id, bob.handle, email)
    assert (agent.contact_type, agent.user.id, agent.user.handle) == ("Agent", weather.id, weather.handle)
    assert agent.user.name == "Weather"
    # The record is neither of the two, and each side has its own.
    (his,) = (await bob.rest.human_api_contacts.list_my_contacts()).data
    assert len({person.id, agent.id, his.id, ann.id, bob.id, weather.id}) == 6


async def test_an_address_is_told_to_contacts_only(ann: Person, bob: Person) -> None:
    email = (await bob.rest.human_api_profile.get_my_profile()).data.email
    await request(ann, bob)
    for path in ("/api/v1/me/contacts/requests/sent", "/api/v1/me/peers", "/api/v1/me/contacts"):
        assert email not in (await ann.raw.get(path)).text
    await request(bob, ann)
    assert email in (await ann.raw.get("/api/v1/me/contacts")).text


@pytest.mark.parametrize("by", ["handle", "@handle", "contact_id"])
async def test_one_removal_ends_both_directions(ann: Person, bob: Person, by: str) -> None:
    await befriend(ann, bob)
    (mine,) = (await ann.rest.human_api_contacts.list_my_contacts()).data
    spellings = {
        "handle": {"handle": bob.handle},
        "@handle": {"handle": f"@{bob.handle}"},
        "contact_id": {"contact_id": mine.id},
    }

    removed = (await ann.rest.human_api_contacts.remove_my_contact(**spellings[by])).data

    assert removed.status == "removed"
    assert await contacts(ann) == await contacts(bob) == set()
    assert await refused(ann.rest.human_api_contacts.remove_my_contact, **spellings[by]) == NOT_FOUND


async def test_a_removal_needs_a_contact(ann: Person, bob: Person) -> None:
    remove = ann.rest.human_api_contacts.remove_my_contact
    assert await refused(remove) == BAD_REQUEST
    assert await refused(remove, handle="two words") == BAD_REQUEST
    await befriend(ann, bob)
    (his,) = (await bob.rest.human_api_contacts.list_my_contacts()).data
    for which in ({"handle": ann.handle}, {"contact_id": UNKNOWN_ID}, {"contact_id": his.id}):
        assert await refused(remove, **which) == NOT_FOUND
    assert await contacts(ann) == {bob.id}


async def test_a_contact_is_a_peer_and_may_be_brought_into_a_room(ann: Person, bob: Person, cast: Cast) -> None:
    weather = await cast.bot(bob, "Weather")
    room = await ann.open_room()
    add = ann.rest.human_api_participants.add_my_chat_participant
    for stranger in (bob, weather):
        wanted = ParticipantRequest(participant_id=stranger.id)
        assert await refused(add, room, participant=wanted) == FORBIDDEN

    await befriend(ann, bob)
    await befriend(ann, weather)

    peers = {peer.id: peer for peer in (await ann.rest.human_api_peers.list_my_peers()).data}
    assert {(peers[one.id].source, peers[one.id].is_contact) for one in (bob, weather)} == {("contact", True)}
    assert [peer.id for peer in (await ann.rest.human_api_peers.list_my_peers(type="User")).data] == [bob.id]
    for friend in (bob, weather):
        await ann.add(room, friend)
    await bob.say(room, "Thanks for having me", ann)
    assert [sender for sender, _ in await ann.texts(room)] == [bob.id]


async def test_an_agents_contacts_are_not_its_owners(ann: Person, bot: Bot, bob: Person) -> None:
    await befriend(bot, bob)
    assert await contacts(ann) == set()
    assert bob.id not in {peer.id for peer in (await ann.rest.human_api_peers.list_my_peers()).data}


async def test_more_than_handle_and_message_is_refused(ann: Person, bob: Person) -> None:
    body = {"contact_request": {"recipient_handle": bob.handle, "status": "approved"}}
    refusal = refused_raw(await ann.raw.post("/api/v1/me/contacts/requests", json=body))
    assert (refusal.status, refusal.code) == (422, "validation_error")
    assert refusal.names("/contact_request/status")
