"""Signals to a live agent: a stop, a play and an interrupt, each in the middle of a turn."""

from __future__ import annotations

import asyncio

import pytest
from band.core.exceptions import RoomExecutionStoppedError
from band.core.protocols import AgentToolsProtocol
from band.core.types import PlatformMessage
from band.platform.posting import post_event, post_message
from band_rest.types import ChatEventRequest

from harness.cast import Bot, Cast, Person, message
from harness.control import executions, interrupt, play, stop
from harness.scripted import Scripted, agent_of, running, subscribed
from harness.server import Server
from harness.waiting import eventually


class Hesitant:
    """Its first turn never ends by itself; the later ones answer."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []
        self.adapter = Scripted(self._turn)

    async def _turn(self, message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        if len(self.adapter.heard) > 1:
            await tools.send_message("At last", mentions=[message.sender_id])
            return
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append(message.id)
            raise

    async def hears(self, *messages: str) -> None:
        async def heard() -> bool:
            return self.adapter.heard_ids == list(messages)

        await eventually(heard, what=f"the agent hears {messages}, not {self.adapter.heard_ids}")

    async def gives_up(self, message: str) -> None:
        async def given_up() -> bool:
            return self.cancelled == [message]

        await eventually(given_up, what="the turn is cancelled")


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


async def test_a_stop_ends_the_turn_without_a_mark_and_a_play_begins_it_again(
    server: Server, ann: Person, bot: Bot, room: str
) -> None:
    agent = Hesitant()
    async with running(agent_of(server, bot, agent.adapter)) as program:
        await subscribed(program, room)
        sent = (await ann.say(room, "Take your time", bot)).id
        await agent.hears(sent)

        await stop(ann, room)
        await agent.gives_up(sent)
        delivery = await ann.delivery(room, sent, bot)
        assert delivery["status"] == "processing"
        assert [one["status"] for one in delivery["attempts"]] == ["processing"]
        # What is said meanwhile waits.
        later = (await ann.say(room, "And this", bot)).id

        await play(ann, room)
        done = await ann.settled(room, sent, bot, "processed")
        await ann.settled(room, later, bot, "processed")

    assert agent.adapter.heard_ids == [sent, sent, later]
    assert [(one["attempt_number"], one["status"]) for one in done["attempts"]] == [(1, "failed"), (2, "success")]
    assert [sender for sender, _ in await ann.texts(room)] == [ann.id, ann.id, bot.id, bot.id]


async def test_an_interrupt_ends_the_turn_and_its_message(server: Server, ann: Person, bot: Bot, room: str) -> None:
    agent = Hesitant()
    async with running(agent_of(server, bot, agent.adapter)) as program:
        await subscribed(program, room)
        sent = (await ann.say(room, "Take your time", bot)).id
        await agent.hears(sent)
        (execution,) = await executions(ann, bot)

        await interrupt(ann, bot, execution["id"])

        await agent.gives_up(sent)
        done = await ann.settled(room, sent, bot, "processed")
        assert [one["status"] for one in done["attempts"]] == ["success"]
        # It goes on with what comes next.
        later = (await ann.say(room, "Never mind", bot)).id
        await ann.settled(room, later, bot, "processed")

    assert agent.adapter.heard_ids == [sent, later]
    assert [sender for sender, _ in await ann.texts(room)] == [ann.id, ann.id, bot.id]


async def test_an_interrupt_between_turns_changes_nothing(server: Server, ann: Person, bot: Bot, room: str) -> None:
    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        await tools.send_message("Here", mentions=[message.sender_id])

    adapter = Scripted(turn)
    async with running(agent_of(server, bot, adapter)) as program:
        await subscribed(program, room)
        (execution,) = await executions(ann, bot)
        await interrupt(ann, bot, execution["id"])
        sent = (await ann.say(room, "Still there?", bot)).id
        await ann.settled(room, sent, bot, "processed")
    assert adapter.heard_ids == [sent]


async def test_a_stop_leaves_other_rooms_alone(server: Server, ann: Person, bot: Bot, room: str) -> None:
    other = await ann.open_room(bot)
    agent = Hesitant()
    async with running(agent_of(server, bot, agent.adapter)) as program:
        await subscribed(program, room)
        await subscribed(program, other)
        sent = (await ann.say(room, "Take your time", bot)).id
        await agent.hears(sent)
        await stop(ann, room)
        await agent.gives_up(sent)
        elsewhere = (await ann.say(other, "And here?", bot)).id
        await ann.settled(other, elsewhere, bot, "processed")
    assert agent.adapter.heard_ids == [sent, elsewhere]


async def test_an_agent_that_starts_while_stopped_waits_for_the_play(
    server: Server, ann: Person, bot: Bot, room: str
) -> None:
    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        await tools.send_message("Here", mentions=[message.sender_id])

    sent = (await ann.say(room, "Hello", bot)).id
    await stop(ann, room)
    adapter = Scripted(turn)
    async with running(agent_of(server, bot, adapter)) as program:
        await subscribed(program, room)
        assert adapter.heard_ids == []
        await play(ann, room)
        await ann.settled(room, sent, bot, "processed")
    assert adapter.heard_ids == [sent]


async def test_a_stopped_agents_posts_are_refused_as_the_sdk_knows_it(
    ann: Person, bot: Bot, room: str, cast: Cast
) -> None:
    # Outside a turn, where nothing cancels it: the SDK's own way of posting, and its own error.
    await stop(ann, room)
    event = ChatEventRequest(content="thinking", message_type="thought")
    for post in (
        post_message(rest=bot.rest, room_id=room, request=message("Hi", ann)),
        post_event(rest=bot.rest, room_id=room, request=event),
    ):
        with pytest.raises(RoomExecutionStoppedError) as refusal:
            await post
        assert str(refusal.value) == f"Room {room}: platform execution was stopped"
