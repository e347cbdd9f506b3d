"""How band-sdk handles contact events: by the program's own callback, or by the agent in a room made for it."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from band.core.protocols import AgentToolsProtocol
from band.core.types import PlatformMessage
from band.platform.event import (
    ContactAddedEvent,
    ContactEvent,
    ContactRemovedEvent,
    ContactRequestReceivedEvent,
    ContactRequestUpdatedEvent,
)
from band.runtime.contact_tools import ContactTools
from band.runtime.contacts import ContactEventConfig, ContactEventStrategy

from harness.cast import Bot, Cast, Person
from harness.contacts import ask, befriend
from harness.scripted import Scripted, agent_of, declining, running
from harness.server import Server
from harness.waiting import eventually, within


class Diary:
    """What the callback was told, in order."""

    def __init__(self) -> None:
        self._events: asyncio.Queue[ContactEvent] = asyncio.Queue()

    def note(self, event: ContactEvent) -> None:
        self._events.put_nowait(event)

    async def reads(self, kind: type) -> Any:
        """The payload of the next event, which must be of that kind."""
        event = await within(10, self._events.get(), what=f"a {kind.__name__}")
        assert isinstance(event, kind), event
        return event.payload

    async def reads_both(self, *kinds: type) -> list[Any]:
        """The payloads of the next events, which may come in any order."""
        events = [await within(10, self._events.get(), what=f"one of {kinds}") for _ in kinds]
        found = {type(event): event.payload for event in events}
        assert found.keys() == set(kinds), events
        return [found[kind] for kind in kinds]


@pytest.fixture
async def weather(cast: Cast) -> Bot:
    """A stranger's agent."""
    return await cast.bot(await cast.person("bob"), "Weather")


def callback(diary: Diary, answer: str | None = None) -> ContactEventConfig:
    async def on_event(event: ContactEvent, tools: ContactTools) -> None:
        if answer is not None and isinstance(event, ContactRequestReceivedEvent):
            done = await tools.respond_contact_request(answer, request_id=event.payload.id)
            assert done["id"] == event.payload.id
        diary.note(event)

    return ContactEventConfig(strategy=ContactEventStrategy.CALLBACK, on_event=on_event)


async def test_a_callback_consents(server: Server, bot: Bot, weather: Bot) -> None:
    diary = Diary()
    async with running(agent_of(server, bot, Scripted(declining), contacts=callback(diary, "approve"))) as agent:
        assert agent.is_contacts_subscribed
        asked = (await weather.rest.agent_api_contacts.add_agent_contact(handle=bot.handle, message="Sun?")).data

        received = await diary.reads(ContactRequestReceivedEvent)
        assert (received.id, received.status, received.message) == (asked.id, "pending", "Sun?")
        assert (received.from_handle, received.from_name) == (weather.handle, weather.name)
        updated, added = await diary.reads_both(ContactRequestUpdatedEvent, ContactAddedEvent)
        assert (updated.id, updated.status) == (asked.id, "approved")
        assert (added.handle, added.name, added.type) == (weather.handle, weather.name, "Agent")
        (contact,) = (await bot.rest.agent_api_contacts.list_agent_contacts()).data
        assert added.id == contact.id

        await weather.rest.agent_api_contacts.remove_agent_contact(handle=bot.handle)
        assert (await diary.reads(ContactRemovedEvent)).id == contact.id


async def test_a_callback_declines_and_both_sides_learn_it(server: Server, bot: Bot, weather: Bot) -> None:
    mine, its = Diary(), Diary()
    async with (
        running(agent_of(server, bot, Scripted(declining), contacts=callback(mine, "reject"))),
        running(agent_of(server, weather, Scripted(declining), contacts=callback(its))),
    ):
        asked = await ask(weather, bot)
        await mine.reads(ContactRequestReceivedEvent)
        for diary in (mine, its):
            updated = await diary.reads(ContactRequestUpdatedEvent)
            assert (updated.id, updated.status) == (asked, "rejected")


async def test_a_request_that_is_taken_back(server: Server, bot: Bot, weather: Bot) -> None:
    diary = Diary()
    async with running(agent_of(server, bot, Scripted(declining), contacts=callback(diary))):
        asked = await ask(weather, bot)
        assert (await diary.reads(ContactRequestReceivedEvent)).id == asked
        await weather.rest.agent_api_contacts.respond_to_agent_contact_request(action="cancel", request_id=asked)
        updated = await diary.reads(ContactRequestUpdatedEvent)
        assert (updated.id, updated.status) == (asked, "cancelled")


async def test_a_person_becomes_a_contact(server: Server, ann: Person, bot: Bot, cast: Cast) -> None:
    bob = await cast.person("bob")
    diary = Diary()
    async with running(agent_of(server, bot, Scripted(declining), contacts=callback(diary, "approve"))):
        await ask(bob, bot)
        received = await diary.reads(ContactRequestReceivedEvent)
        assert received.from_handle == bob.handle
        _, added = await diary.reads_both(ContactRequestUpdatedEvent, ContactAddedEvent)
        assert (added.handle, added.type) == (bob.handle, "User")


async def test_a_callback_has_all_five_tools(server: Server, bot: Bot, weather: Bot, cast: Cast) -> None:
    friend = await cast.bot(await cast.person("eve"), "Friend")
    await befriend(friend, bot)
    findings: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def on_event(event: ContactEvent, tools: ContactTools) -> None:
        if not isinstance(event, ContactRequestReceivedEvent):
            return
        try:
            found = {
                "contacts": await tools.list_contacts(),
                "requests": await tools.list_contact_requests(sent_status="all"),
                "asked back": await tools.add_contact(weather.handle),
                "removed": await tools.remove_contact(handle=friend.handle),
                "left": await tools.list_contacts(page=1, page_size=10),
            }
            findings.set_result(found)
        except Exception as failure:
            findings.set_exception(failure)

    contacts = ContactEventConfig(strategy=ContactEventStrategy.CALLBACK, on_event=on_event)
    async with running(agent_of(server, bot, Scripted(declining), contacts=contacts)):
        asked = await ask(weather, bot)
        found = await within(20, findings, what="the callback is through")

    assert [one["handle"] for one in found["contacts"]["contacts"]] == [friend.handle]
    assert found["contacts"]["metadata"] == {"page": 1, "page_size": 50, "total_count": 1, "total_pages": 1}
    (received,) = found["requests"]["received"]
    assert (received["id"], received["from_handle"], received["from_name"]) == (asked, weather.handle, weather.name)
    assert found["asked back"]["status"] == "approved"
    assert found["removed"] == {"status": "removed"}
    assert [one["handle"] for one in found["left"]["contacts"]] == [weather.handle]


async def test_the_agent_decides_in_a_hub_room(server: Server, ann: Person, bot: Bot, weather: Bot) -> None:
    heard: list[PlatformMessage] = []

    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        heard.append(message)
        if message.content.startswith("[Contact Request] "):
            request = re.search(r"Request ID: (\S+)", message.content)
            assert request is not None
            outcome = await tools.execute_tool_call_structured(
                "band_respond_contact_request", {"action": "approve", "request_id": request[1]}
            )
            assert outcome.ok, outcome.error_message

    def begins(text: str) -> list[str]:
        return [message.content for message in heard if message.content.startswith(text)]

    hub = ContactEventConfig(strategy=ContactEventStrategy.HUB_ROOM)
    async with running(agent_of(server, bot, Scripted(turn), contacts=hub)):
        # The room is made at the start, by the agent alone.
        (room,) = (await bot.rest.agent_api_chats.list_agent_chats()).data
        asked = (await weather.rest.agent_api_contacts.add_agent_contact(handle=bot.handle, message="Sun?")).data

        async def told() -> bool:
            return bool(begins("[Contact Added]"))

        await eventually(told, what="the agent hears of its new contact", within=30)
        await weather.rest.agent_api_contacts.remove_agent_contact(handle=bot.handle)

        async def told_of_the_end() -> bool:
            return bool(begins("[Contact Removed]"))

        await eventually(told_of_the_end, what="the agent hears of the end", within=30)

        async def shown() -> bool:
            return len(await ann.messages(room.id, message_type="task")) == 4

        await eventually(shown, what="all four are shown in the room")

    (request,) = begins("[Contact Request] ")
    assert asked.id in request and f"(@{weather.handle})" in request and 'Message: "Sun?"' in request
    (update,) = begins("[Contact Request Update]")
    assert asked.id in update and "approved" in update
    (added,) = begins("[Contact Added]")
    assert f"(@{weather.handle})" in added
    assert {(message.sender_type, message.room_id) for message in heard} == {("System", room.id)}
    # People can read along in the room.
    events = await ann.messages(room.id, message_type="task")
    assert sorted(event.metadata.model_dump()["contact_event_type"] for event in events) == [
        "contact_added",
        "contact_removed",
        "contact_request_received",
        "contact_request_updated",
    ]
