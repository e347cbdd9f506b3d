"""A real `band.Agent` of band-sdk 6.0.1 whose turns are written by the test instead of by a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from band.agent import Agent
from band.core.protocols import AgentToolsProtocol
from band.core.simple_adapter import SimpleAdapter
from band.core.types import Capability, PlatformMessage
from band.runtime.agentconfig import AgentConfig
from band.runtime.contacts import ContactEventConfig
from band.runtime.sessionconfig import SessionConfig

from harness.cast import Bot, Identity
from harness.server import Server
from harness.waiting import eventually, within

Turn = Callable[[PlatformMessage, AgentToolsProtocol], Awaitable[None]]

# One process holds two instances of an agent in some stories, which the SDK's own lock would refuse.
TWO_INSTANCES = AgentConfig(single_instance=False)


class Scripted(SimpleAdapter[Any]):
    """Runs the test's turn for each message, and remembers what it was given and which rooms were closed to it."""

    SUPPORTED_CAPABILITIES = frozenset(Capability)

    def __init__(self, turn: Turn, capabilities: Iterable[Capability] = ()) -> None:
        super().__init__(capabilities=capabilities)
        self._turn = turn
        self.heard: list[PlatformMessage] = []
        self.left: list[str] = []

    async def on_message(
        self,
        msg: PlatformMessage,
        tools: AgentToolsProtocol,
        history: Any,
        participants_msg: str | None,
        contacts_msg: str | None,
        *,
        is_session_bootstrap: bool,
        room_id: str,
    ) -> None:
        self.heard.append(msg)
        await self._turn(msg, tools)

    async def on_cleanup(self, room_id: str) -> None:
        self.left.append(room_id)

    @property
    def heard_ids(self) -> list[str]:
        return [message.id for message in self.heard]

    async def has_left(self, room: str) -> None:
        async def left() -> bool:
            return room in self.left

        await eventually(left, what=f"the agent tears room {room} down")


def replying(text: str = "Hello yourself") -> Turn:
    """Answers whoever spoke."""

    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        await tools.send_message(text, mentions=[message.sender_id])

    return turn


async def declining(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
    """Says that it has nothing to say."""
    outcome = await tools.execute_tool_call("band_no_reply", {"reason": "not for me"})
    assert outcome == {"status": "no_reply"}


async def silent(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
    """Only looks around, and so owes an answer."""
    await tools.get_participants()


def recruiting(who: Identity) -> Turn:
    """Brings somebody into the room and says nothing."""

    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        outcome = await tools.execute_tool_call("band_add_participant", {"identifier": who.handle})
        assert outcome["status"] == "added", outcome

    return turn


def raising(error: Exception) -> Turn:
    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        raise error

    return turn


def agent_of(
    server: Server,
    bot: Bot,
    adapter: Scripted,
    config: AgentConfig | None = None,
    contacts: ContactEventConfig | None = None,
    session: SessionConfig | None = None,
) -> Agent:
    """The agent as its owner's program would create it: only the URLs differ from the hosted platform's."""
    return Agent.create(
        adapter=adapter,
        agent_id=bot.id,
        api_key=bot.api_key,
        ws_url=server.socket_url,
        rest_url=server.url,
        config=config,
        contact_config=contacts,
        session_config=session,
    )


@asynccontextmanager
async def running(agent: Agent) -> AsyncIterator[Agent]:
    """The agent at work; it must start and stop in good time."""
    await within(20, agent.start(), what="the agent starts")
    try:
        yield agent
    finally:
        await within(20, agent.stop(timeout=10), what="the agent stops")


async def ended(agent: Agent) -> None:
    """Waits until an agent's `run_forever` returns, as its process would."""
    await within(20, agent.run_forever(install_signal_handlers=False), what="the agent ends by itself")


async def subscribed(agent: Agent, room: str) -> None:
    """Waits until an agent listens in a room."""

    async def listens() -> bool:
        return agent.runtime.link.is_room_subscribed(room)

    await eventually(listens, what=f"the agent listens in room {room}")


async def never_ending(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
    """Works until it is killed."""
    await asyncio.Event().wait()
