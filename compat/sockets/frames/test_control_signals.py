"""`agent.control` as it is pushed: to whom, where, and with an id of its own for each request."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from harness.cast import Bot, Cast, Person
from harness.control import executions, interrupt, play, stop
from harness.frames import Socket, open_socket
from harness.server import Server


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


@pytest.fixture
async def agent(server: Server, bot: Bot) -> AsyncIterator[Socket]:
    async with open_socket(server, bot.api_key, agent_id=bot.id) as socket:
        await socket.joins(f"agent_control:{bot.id}")
        yield socket


async def test_a_stop_and_a_play_name_their_room(ann: Person, bot: Bot, room: str, agent: Socket) -> None:
    seen = set()
    for signal, mode in ((stop, "stop"), (play, "play"), (stop, "stop"), (play, "play")):
        await signal(ann, room)
        pushed = await agent.pushed(f"agent_control:{bot.id}", "agent.control")
        assert (pushed["mode"], pushed["scope"]) == (mode, "room")
        assert (pushed["agent_id"], pushed["room_id"]) == (bot.id, room)
        assert "execution_id" in pushed and isinstance(pushed["correlation_id"], str)
        # A client drops what it has seen, so each request has an id of its own.
        assert pushed["correlation_id"] not in seen
        seen.add(pushed["correlation_id"])


async def test_an_interrupt_names_its_execution(ann: Person, bot: Bot, room: str, agent: Socket) -> None:
    (execution,) = await executions(ann, bot)
    await interrupt(ann, bot, execution["id"])
    pushed = await agent.pushed(f"agent_control:{bot.id}", "agent.control")
    assert (pushed["mode"], pushed["agent_id"], pushed["execution_id"]) == ("interrupt", bot.id, execution["id"])
    # The clients apply it to the room, or to all rooms of the agent.
    assert (pushed["scope"], pushed["room_id"]) in {("room", room), ("agent", None)}


async def test_every_agent_of_the_room_and_no_other_is_told(
    server: Server, ann: Person, bot: Bot, room: str, agent: Socket, cast: Cast
) -> None:
    member, outsider = await cast.bots(ann, 2)
    await ann.add(room, member)
    async with (
        open_socket(server, member.api_key, agent_id=member.id) as its,
        open_socket(server, outsider.api_key, agent_id=outsider.id) as others,
    ):
        await its.joins(f"agent_control:{member.id}")
        await others.joins(f"agent_control:{outsider.id}")
        await stop(ann, room)
        for socket, who in ((agent, bot), (its, member)):
            pushed = await socket.pushed(f"agent_control:{who.id}", "agent.control")
            assert (pushed["agent_id"], pushed["room_id"]) == (who.id, room)
        await others.settle()
        assert others.kept(f"agent_control:{outsider.id}", "agent.control") == []
