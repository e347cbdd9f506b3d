"""The three kinds of agent's program that the matrix is about, so that a story can start, use and kill each."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.cast import Bot
from harness.paths import COMPAT
from harness.server import Server
from harness.waiting import within

WORKER = COMPAT / "sdk" / "agents" / "worker.py"
LISTENER = COMPAT / "ledger" / "listener.py"


class Program:
    """A process that says on its output what it does."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def says(self) -> dict[str, str]:
        assert self._process.stdout is not None
        line = await within(20, self._process.stdout.readline(), what="the program says something")
        return json.loads(line)

    async def dies(self) -> None:
        self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def _program(script: str, *arguments: str, **environment: str) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        script,
        *arguments,
        env={**os.environ, "PYTHONPATH": str(COMPAT), **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def stuck_worker(server: Server, bot: Bot) -> AsyncIterator[Program]:
    """A band-sdk agent that never ends its turn."""
    own = {"WORKER_AGENT_ID": bot.id, "WORKER_API_KEY": bot.api_key}
    where = {"BAND_REST_URL": server.url, "BAND_WS_URL": server.socket_url}
    async with _program(str(WORKER), "stuck", **own, **where) as program:
        yield program


@asynccontextmanager
async def listener(server: Server, bot: Bot, room: str, *, takes: bool = False) -> AsyncIterator[Program]:
    """A bare socket client that listens in a room, and perhaps takes what it hears."""
    own = {"LISTENER_ID": bot.id, "LISTENER_KEY": bot.api_key, "LISTENER_ROOM": room}
    where = {"BAND_REST_URL": server.url, "BAND_WS_URL": server.socket_url}
    async with _program(str(LISTENER), *(["takes"] if takes else []), **own, **where) as program:
        assert await program.says() == {"listening": room}
        yield program
