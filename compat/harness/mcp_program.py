"""Sessions with MCP servers: `band-mcp`, with every reply that it gets held against the contract, and our own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

from harness.cast import Bot, Person
from harness.paths import COMPAT, binary
from harness.server import Server
from harness.waiting import within

LAUNCHER = COMPAT / "mcp_stdio" / "launcher.py"


class Tools:
    """A session with an MCP server, which of its tools were called, and what each answered."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.made: set[str] = set()
        self.answers: list[tuple[str, bool, Any]] = []

    async def offered(self) -> dict[str, dict[str, Any]]:
        """Each tool and its input schema."""
        return {tool.name: tool.inputSchema for tool in (await self.session.list_tools()).tools}

    async def __call__(self, name: str, /, **arguments: Any) -> Any:
        """Calls a tool, which must succeed: its text, or what the text is the JSON of."""
        self.made.add(name)
        failed, text = await self._text(name, arguments)
        assert not failed and not text.startswith("Error"), f"{name}: {text}"
        return _read(text)

    async def fails(self, name: str, /, **arguments: Any) -> str:
        failed, text = await self._text(name, arguments)
        assert failed, f"{name}: {text}"
        return text

    @staticmethod
    def read(text: str) -> Any:
        """What a text is the JSON of, or the text."""
        return _read(text)

    async def _text(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        result = await within(70, self.session.call_tool(name, arguments), what=f"{name} answers")
        (block,) = result.content
        self.answers.append((name, bool(result.isError), _read(block.text)))
        return bool(result.isError), block.text


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@asynccontextmanager
async def band_mcp(
    server: Server, folder: Path, *flags: str, agent: Bot | None = None, person: Person | None = None
) -> AsyncIterator[Tools]:
    """The program with these keys; it fails the test when a reply that it got breaks the contract."""
    violations = folder / "violations"
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[str(LAUNCHER), *flags],
        # Nothing of the caller's: no keys, no `.env`.
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(COMPAT),
            "MCP_VIOLATIONS": str(violations),
            "BAND_BASE_URL": server.url,
            **({} if agent is None else {"BAND_AGENT_KEY": agent.api_key}),
            **({} if person is None else {"BAND_USER_KEY": person.api_key}),
        },
        cwd=folder,
    )
    with (folder / "errors").open("w") as errors:
        async with stdio_client(parameters, errlog=errors) as (read, write), ClientSession(read, write) as session:
            hello = await within(30, session.initialize(), what="band-mcp starts")
            assert hello.serverInfo.name == "band-mcp-server"
            yield Tools(session)
    assert violations.read_text() == "", "replies that break the contract"


@asynccontextmanager
async def own_stdio(
    server: Server, folder: Path, *flags: str, agent: Bot | None = None, person: Person | None = None
) -> AsyncIterator[Tools]:
    """`bandstand mcp` with these keys, which takes the flags and variables of `band-mcp`."""
    parameters = StdioServerParameters(
        command=str(binary()),
        args=["mcp", *flags],
        env={
            "PATH": os.environ["PATH"],
            "BAND_BASE_URL": server.url,
            **({} if agent is None else {"BAND_AGENT_KEY": agent.api_key}),
            **({} if person is None else {"BAND_USER_KEY": person.api_key}),
        },
        cwd=folder,
    )
    with (folder / "errors").open("w") as errors:
        async with stdio_client(parameters, errlog=errors) as (read, write), ClientSession(read, write) as session:
            hello = await within(30, session.initialize(), what="bandstand mcp starts")
            assert hello.serverInfo.name == "band-mcp-server"
            yield Tools(session)


@asynccontextmanager
async def own_http(server: Server, key: str, query: str = "", *, bearer: bool = False) -> AsyncIterator[Tools]:
    """The server's own `/mcp`: an address and a key is all that a client needs."""
    headers = {"Authorization": f"Bearer {key}"} if bearer else {"x-api-key": key}
    async with (
        streamablehttp_client(f"{server.url}/mcp{query}", headers=headers) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await within(30, session.initialize(), what="the session opens")
        yield Tools(session)
