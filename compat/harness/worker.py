"""An agent in a process of its own, for tests that kill it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from .cast import Bot
from .paths import COMPAT
from .server import Server
from .waiting import within

WORKER = COMPAT / "sdk" / "agents" / "worker.py"


class Worker:
    """An agent in a process of its own, which says on its output what it does."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def says(self) -> dict[str, str]:
        assert self._process.stdout is not None
        line = await within(20, self._process.stdout.readline(), what="the agent's process says something")
        return json.loads(line)

    def kill(self) -> None:
        self._process.kill()

    async def stops(self) -> None:
        """Ends as a service manager would end it; replies that broke the contract would have failed it."""
        self._process.terminate()
        code = await within(20, self._process.wait(), what="the agent's process ends")
        assert code == 0, f"the agent's process ended with {code}"


@asynccontextmanager
async def worker(server: Server, bot: Bot, manner: str) -> AsyncIterator[Worker]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(WORKER),
        manner,
        env={
            **os.environ,
            "PYTHONPATH": str(COMPAT),
            "WORKER_AGENT_ID": bot.id,
            "WORKER_API_KEY": bot.api_key,
            "BAND_REST_URL": server.url,
            "BAND_WS_URL": server.socket_url,
        },
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Worker(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
