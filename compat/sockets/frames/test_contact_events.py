"""The four contact events on the channels of agents and of people, each held against band-sdk-core's validator."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness.cast import DESCRIPTION, Bot, Cast, Person
from harness.contacts import ask, befriend
from harness.frames import Socket, open_socket
from harness.server import Server


@pytest.fixture
async def bob(cast: Cast) -> Person:
    return await cast.person("bob")


@pytest.fixture
async def weather(bob: Person, cast: Cast) -> Bot:
    return await cast.bot(bob, "Weather")


@pytest.fixture
async def agent(server: Server, bot: Bot) -> AsyncIterator[Socket]:
    async with open_socket(server, bot.api_key, agent_id=bot.id) as socket:
        await socket.joins(f"agent_control:{bot.id}", f"agent_contacts:{bot.id}")
        yield socket


@pytest.fixture
async def person(server: Server, ann: Person) -> AsyncIterator[Socket]:
    async with open_socket(server, ann.api_key) as socket:
        await socket.joins(f"user_contacts:{ann.id}")
        yield socket


async def test_an_agent_is_asked(bot: Bot, weather: Bot, agent: Socket) -> None:
    topic = f"agent_contacts:{bot.id}"
    asked = (await weather.rest.agent_api_contacts.add_agent_contact(handle=bot.handle, message="Sun?")).data

    pushed = await agent.pushed(topic, "contact_request_received")

    assert (pushed["id"], pushed["status"], pushed["message"]) == (asked.id, "pending", "Sun?")
    assert (pushed["from_handle"], pushed["from_name"]) == (weather.handle, weather.name)
    assert isinstance(pushed["inserted_at"], str)
    await weather.rest.agent_api_contacts.respond_to_agent_contact_request(action="cancel", request_id=asked.id)
    assert await agent.pushed(topic, "contact_request_updated") == {"id": asked.id, "status": "cancelled"}
    # Without a message there is no key for it.
    await ask(weather, bot)
    assert "message" not in await agent.pushed(topic, "contact_request_received")


async def test_a_person_is_asked(ann: Person, bob: Person, weather: Bot, person: Socket) -> None:
    topic = f"user_contacts:{ann.id}"
    for asker, kind in ((bob, "User"), (weather, "Agent")):
        request = await ask(asker, ann)
        pushed = await person.pushed(topic, "contact_request_received")
        assert (pushed["id"], pushed["status"], pushed["responded_at"]) == (request, "pending", None)
        assert (pushed["requester_id"], pushed["requester_type"]) == (asker.id, kind)
        assert (pushed["recipient_id"], pushed["recipient_type"]) == (ann.id, "User")
        assert (pushed["requester"]["id"], pushed["requester"]["handle"]) == (asker.id, asker.handle)
        assert "email" not in str(pushed)


@pytest.mark.parametrize(("answer", "status"), [("approve", "approved"), ("reject", "rejected")])
async def test_both_sides_learn_of_an_answer(
    ann: Person, bot: Bot, bob: Person, agent: Socket, person: Socket, answer: str, status: str
) -> None:
    # Once as the ones who were asked, once as the ones who asked.
    for asker, asked in ((bob, bot), (bot, bob), (bob, ann), (ann, bob)):
        request = await ask(asker, asked)
        if isinstance(asked, Bot):
            method = asked.rest.agent_api_contacts.respond_to_agent_contact_request
            await method(action=answer, request_id=request)
        else:
            await getattr(asked.rest.human_api_contacts, f"{answer}_contact_request")(request)
        socket, topic = (
            (agent, f"agent_contacts:{bot.id}") if bot in (asker, asked) else (person, f"user_contacts:{ann.id}")
        )
        updated = await socket.pushed(topic, "contact_request_updated")
        assert (updated["id"], updated["status"]) == (request, status)
        if status == "approved":
            mine = bot if bot in (asker, asked) else ann
            await socket.pushed(topic, "contact_added")
            if isinstance(mine, Bot):
                await mine.rest.agent_api_contacts.remove_agent_contact(handle=bob.handle)
            else:
                await mine.rest.human_api_contacts.remove_my_contact(handle=bob.handle)
            await socket.pushed(topic, "contact_removed")


async def test_each_side_is_told_of_its_own_record(
    ann: Person, bot: Bot, bob: Person, weather: Bot, agent: Socket, person: Socket
) -> None:
    await befriend(weather, bot)
    await befriend(bob, ann)
    await befriend(ann, weather)

    added = await agent.pushed(f"agent_contacts:{bot.id}", "contact_added")
    (mine,) = (await bot.rest.agent_api_contacts.list_agent_contacts()).data
    assert (added["id"], added["type"], added["handle"], added["name"]) == (
        mine.id,
        "Agent",
        weather.handle,
        weather.name,
    )
    assert added["description"] == DESCRIPTION and added["is_external"] is True

    records = {row.contact_id: row.id for row in (await ann.rest.human_api_contacts.list_my_contacts()).data}
    added = await person.pushed(f"user_contacts:{ann.id}", "contact_added")
    assert (added["id"], added["type"], added["handle"]) == (records[bob.id], "User", bob.handle)
    assert isinstance(added["name"], str)
    added = await person.pushed(f"user_contacts:{ann.id}", "contact_added")
    assert (added["id"], added["type"], added["handle"]) == (records[weather.id], "Agent", weather.handle)

    await weather.rest.agent_api_contacts.remove_agent_contact(handle=bot.handle)
    assert (await agent.pushed(f"agent_contacts:{bot.id}", "contact_removed"))["id"] == mine.id
    await bob.rest.human_api_contacts.remove_my_contact(handle=ann.handle)
    assert (await person.pushed(f"user_contacts:{ann.id}", "contact_removed"))["id"] == records[bob.id]


async def test_an_answer_by_asking_back_is_an_answer(bot: Bot, weather: Bot, agent: Socket) -> None:
    topic = f"agent_contacts:{bot.id}"
    request = await ask(bot, weather)
    await ask(weather, bot)
    assert await agent.pushed(topic, "contact_request_updated") == {"id": request, "status": "approved"}
    await agent.pushed(topic, "contact_added")
    await agent.settle()
    assert agent.kept(topic, "contact_request_received") == []


async def test_a_persons_contacts_are_not_their_agents(
    ann: Person, bot: Bot, bob: Person, agent: Socket, person: Socket
) -> None:
    await befriend(bob, ann)
    await person.pushed(f"user_contacts:{ann.id}", "contact_added")
    await agent.settle()
    assert agent.kept(f"agent_contacts:{bot.id}", "contact_added") == []


async def test_the_channels_of_contacts_are_private(server: Server, ann: Person, bot: Bot, weather: Bot) -> None:
    async def refused(socket: Socket, topic: str) -> None:
        reply = (await socket.join(topic)).payload
        assert reply == {"status": "error", "response": {"reason": "unauthorized"}}

    async with open_socket(server, weather.api_key, agent_id=weather.id) as stranger:
        for topic in (f"agent_contacts:{bot.id}", f"user_contacts:{ann.id}"):
            await refused(stranger, topic)
    async with open_socket(server, bot.api_key, agent_id=bot.id) as socket:
        await refused(socket, f"user_contacts:{ann.id}")
    async with open_socket(server, ann.api_key) as socket:
        await refused(socket, f"agent_contacts:{bot.id}")


async def test_contacts_see_who_is_online(server: Server, bot: Bot, weather: Bot) -> None:
    await befriend(bot, weather)

    async def online() -> bool:
        (row,) = (await weather.rest.agent_api_contacts.list_agent_contacts()).data
        return row.online

    assert await online() is False
    async with open_socket(server, bot.api_key, agent_id=bot.id) as socket:
        await socket.joins(f"agent_control:{bot.id}")
        assert await online() is True


async def test_a_deleted_agent_is_a_contact_no_more(bob: Person, bot: Bot, weather: Bot, agent: Socket) -> None:
    await befriend(bot, weather)
    topic = f"agent_contacts:{bot.id}"
    added: dict[str, Any] = await agent.pushed(topic, "contact_added")
    await bob.rest.human_api_agents.delete_my_agent(weather.id, force=True)
    assert (await agent.pushed(topic, "contact_removed"))["id"] == added["id"]
