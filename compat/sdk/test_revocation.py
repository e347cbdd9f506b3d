"""A key is revoked or replaced while an agent works with it."""

from __future__ import annotations

import asyncio
import re

import httpx
import pytest
from band_rest.errors import UnauthorizedError

from harness.cast import Bot, Person
from harness.scripted import Scripted, agent_of, replying, running, subscribed
from harness.server import Server
from harness.waiting import eventually

# What a client that hammers would exceed within a few seconds: band-sdk waits longer each time.
MOST_ATTEMPTS = 8


async def online(ann: Person, bot: Bot) -> bool:
    peers = (await ann.raw.get("/api/v1/me/peers?page_size=100")).json()["data"]
    return any(peer["id"] == bot.id and peer["online"] for peer in peers)


async def test_an_agent_whose_key_is_revoked_is_cut_off_and_does_not_hammer(
    server: Server, ann: Person, bot: Bot
) -> None:
    room = await ann.open_room(bot)
    agent = agent_of(server, bot, Scripted(replying()))
    async with running(agent):
        await subscribed(agent, room)
        sent = (await ann.say(room, "before", bot)).id
        await ann.settled(room, sent, bot, "processed")
        before = len(server.log())

        await asyncio.to_thread(server.command, "key", "revoke", bot.handle)

        async def gone() -> bool:
            return not await online(ann, bot)

        await eventually(gone, what="the agent's connection is closed")
        with pytest.raises(UnauthorizedError):
            await bot.rest.agent_api_identity.get_agent_me()
        # It tries to come back, is told 403, and waits longer each time.
        refused = re.compile(r"socket/websocket.*request refused")

        async def told() -> bool:
            return bool(refused.search(server.log()[before:] if len(server.log()) > before else server.log()))

        await eventually(told, what="the agent tries to come back")
        assert len(refused.findall(server.log())) <= MOST_ATTEMPTS
        assert (await ann.raw.get("/api/v1/me/profile")).status_code == httpx.codes.OK


async def test_a_key_that_is_replaced_with_an_overlap_interrupts_nobody(
    server: Server, ann: Person, bot: Bot
) -> None:
    room = await ann.open_room(bot)
    agent = agent_of(server, bot, Scripted(replying()))
    async with running(agent):
        await subscribed(agent, room)
        await asyncio.to_thread(server.command, "key", "rotate", bot.handle, "--overlap", "24h")
        sent = (await ann.say(room, "after", bot)).id
        done = await ann.settled(room, sent, bot, "processed")
        assert len(done["attempts"]) == 1
