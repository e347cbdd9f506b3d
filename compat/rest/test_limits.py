"""What the generated client makes of an idempotency key, of a rate limit and of a quota."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from band_rest.types import ChatRoomRequest

from harness.cast import Bot, Cast, Person, message
from harness.refusals import Refusal, refused
from harness.server import Server

# One more every two seconds.
WRITES_PER_MINUTE = 30


@pytest.fixture
def limited(tmp_path: Path) -> Iterator[Server]:
    """A server that takes few requests that write from an agent, and few rooms from anybody."""
    server = Server(tmp_path, "--agent-writes-per-minute", str(WRITES_PER_MINUTE), "--quota-rooms", "2").start()
    yield server
    server.close()


@pytest.fixture
async def crowd(limited: Server) -> AsyncIterator[Cast]:
    async with Cast(limited) as cast:
        yield cast


async def test_a_message_sent_again_with_its_key_is_there_once(ann: Person, bot: Bot) -> None:
    room = await bot.open_room(ann)
    options = {"additional_headers": {"Idempotency-Key": "a-retry"}}
    sent = [
        await bot.rest.agent_api_messages.create_agent_chat_message(
            room, message=message("once", ann), request_options=options
        )
        for _ in range(3)
    ]
    assert sent[0] == sent[1] == sent[2]
    rows = (await bot.rest.agent_api_context.get_agent_chat_context(room)).data
    assert [row.id for row in rows] == [sent[0].data.id]


async def test_the_client_waits_for_a_rate_limit_and_gets_through(crowd: Cast) -> None:
    person = await crowd.person()
    bot = await crowd.bot(person, "Busy")
    room = await bot.open_room(person)
    started = time.monotonic()
    sent = [await bot.say(room, f"number {number}", person) for number in range(WRITES_PER_MINUTE + 1)]
    # The first requests came at once; those beyond the minute's worth waited as they were told, and all are there.
    assert time.monotonic() - started >= 1.0
    rows = (await bot.rest.agent_api_context.get_agent_chat_context(room)).data
    assert {row.id for row in rows} == {one.id for one in sent}


async def test_a_quota_is_refused_at_once(crowd: Cast) -> None:
    person = await crowd.person()
    bot = await crowd.bot(person, "Greedy")
    await bot.open_room()
    await bot.open_room()
    refusal = await refused(bot.rest.agent_api_chats.create_agent_chat, chat=ChatRoomRequest())
    assert refusal == Refusal("ForbiddenError", 403, "limit_reached")
    assert refusal.details == {"resource": "chats", "limit": 2, "current": 2}
