"""The processing lease with real agents: a message is told again when its agent seems gone, and handled once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from band.core.protocols import AgentToolsProtocol
from band.core.types import PlatformMessage

from harness.cast import Bot, Cast, Person
from harness.scripted import Scripted, agent_of, raising, replying, running, subscribed
from harness.server import Server
from harness.waiting import eventually
from harness.worker import worker

# band-sdk reports every 3 s: between two reports of an agent that is well, it has been silent for longer than that.
HASTY = ("--lease-gone", "1s", "--lease-silent", "1s")


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[Server]:
    """A server that takes an agent for gone or silent long before it is."""
    server = Server(tmp_path, *HASTY).start()
    yield server
    server.close()


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Server]:
    """A server that gives a message up when it failed once."""
    server = Server(tmp_path, "--dead-letter-attempts", "1").start()
    yield server
    server.close()


class Slow:
    """Its turns end when the test says so."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.adapter = Scripted(self._turn)

    async def _turn(self, message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        await self.may_end.wait()
        await tools.send_message("At last", mentions=[message.sender_id])

    async def begins(self, message: str) -> None:
        async def heard() -> bool:
            return self.adapter.heard_ids == [message]

        await eventually(heard, what="the turn begins")


@asynccontextmanager
async def furnished(server: Server) -> AsyncIterator[tuple[Person, Bot, str]]:
    async with Cast(server) as cast:
        ann = await cast.person()
        bot = await cast.bot(ann, "Writer")
        yield ann, bot, await ann.open_room(bot)


async def ledger(ann: Person, room: str, message: str) -> dict[str, Any]:
    answer = await ann.raw.get(f"/api/v1/me/chats/{room}/messages/{message}/deliveries")
    assert answer.is_success, answer.text
    [row] = answer.json()["data"]
    return row


async def lapses(ann: Person, room: str, message: str) -> None:
    async def lapsed() -> bool:
        return any(step["stage"] == "lapsed" for step in (await ledger(ann, room, message))["stages"])

    await eventually(lapsed, what="the attempt lapses", within=20)


@pytest.mark.timeout(90)
async def test_a_slow_agent_is_told_again_and_handles_it_once(hasty: Server) -> None:
    async with furnished(hasty) as (ann, bot, room):
        slow = Slow()
        async with running(agent_of(hasty, bot, slow.adapter)) as agent:
            await subscribed(agent, room)
            sent = (await ann.say(room, "Take your time", bot)).id
            await slow.begins(sent)
            await lapses(ann, room, sent)
            # The push that followed is in the agent's hands before this one, which it answers after it.
            slow.may_end.set()
            after = (await ann.say(room, "And now?", bot)).id
            done = await ann.settled(room, sent, bot, "processed")
            await ann.settled(room, after, bot, "processed")

        assert slow.adapter.heard_ids == [sent, after]
        assert [(one["attempt_number"], one["status"]) for one in done["attempts"]] == [(1, "success")]
        assert [sender for sender, _ in await ann.texts(room)].count(bot.id) == 2


@pytest.mark.timeout(90)
async def test_an_agent_killed_in_mid_turn_gets_it_once_more(hasty: Server) -> None:
    async with furnished(hasty) as (ann, bot, room):
        sent = (await ann.say(room, "Take your time", bot)).id
        async with worker(hasty, bot, "stuck") as stuck:
            assert await stuck.says() == {"working": sent}
            stuck.kill()
        await lapses(ann, room, sent)

        async with worker(hasty, bot, "replying") as fresh:
            assert await fresh.says() == {"working": sent}
            done = await ann.settled(room, sent, bot, "processed")
            await fresh.stops()

        assert [(one["attempt_number"], one["status"]) for one in done["attempts"]] == [(1, "failed"), (2, "success")]
        assert [sender for sender, _ in await ann.texts(room)] == [ann.id, bot.id]


@pytest.mark.timeout(120)
async def test_a_turn_outlives_its_socket_and_is_done_once(hasty: Server) -> None:
    async with furnished(hasty) as (ann, bot, room):
        slow = Slow()
        async with running(agent_of(hasty, bot, slow.adapter)) as agent:
            await subscribed(agent, room)
            sent = (await ann.say(room, "Take your time", bot)).id
            await slow.begins(sent)
            # All sockets are cut; the agent's turn goes on, and the agent comes back in the middle of it.
            await asyncio.to_thread(hasty.kill)
            await asyncio.to_thread(hasty.start)
            await lapses(ann, room, sent)
            slow.may_end.set()
            done = await ann.settled(room, sent, bot, "processed", within=60)
            after = (await ann.say(room, "And now?", bot)).id
            await ann.settled(room, after, bot, "processed", within=60)

        assert slow.adapter.heard_ids == [sent, after]
        assert [one["status"] for one in done["attempts"]] == ["success"]
        assert [sender for sender, _ in await ann.texts(room)].count(bot.id) == 2


async def test_a_dead_letter_is_redelivered_to_a_restarted_agent(strict: Server) -> None:
    async with furnished(strict) as (ann, bot, room):
        sent = (await ann.say(room, "Do the impossible", bot)).id
        async with running(agent_of(strict, bot, Scripted(raising(RuntimeError("impossible"))))):

            async def dead() -> list[dict[str, Any]]:
                return (await ann.raw.get("/api/v1/me/dead-letters")).json()["data"]

            [letter] = await eventually(dead, what="the message is given up")
        assert (letter["message_id"], letter["reason"]) == (sent, "attempts")
        assert "impossible" in letter["last_error"]
        assert await bot.next(room) is None

        again = f"/api/v1/me/chats/{room}/messages/{sent}/redeliver"
        assert (await ann.raw.post(again, json={"agent_id": bot.id})).is_success
        async with running(agent_of(strict, bot, Scripted(replying()))):
            await ann.settled(room, sent, bot, "processed")
        assert await dead() == []
