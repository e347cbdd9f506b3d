"""A line between an agent and the server that writes down what the agent sends.

Each request gets a connection of its own to the server, so that what is forwarded can be read without knowing HTTP in
full: a head, a body of a known length, an answer up to the end. A socket is passed through, and its frames are read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from harness.waiting import within


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Recorder:
    """Stands where a `Server` stands for an agent: it has the same two addresses."""

    def __init__(self, upstream: str) -> None:
        parts = urlsplit(upstream)
        assert parts.hostname is not None and parts.port is not None
        self._upstream = (parts.hostname, parts.port)
        self._port = 0
        self.requests: list[Request] = []
        # The topics that were joined, in order.
        self.joins: list[str] = []
        # Both sides of what is connected, and the clients' sides of sockets.
        self._open: set[asyncio.StreamWriter] = set()
        self._sockets: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def socket_url(self) -> str:
        return f"ws://127.0.0.1:{self._port}/api/v1/socket/websocket"

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Recorder]:
        tasks: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            self._open.add(writer)
            try:
                await self._serve(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass  # One of the two sides has gone, as sides do.
            finally:
                writer.close()
                self._open.discard(writer)
                tasks.discard(task)

        listener = await asyncio.start_server(serve, "127.0.0.1", 0)
        self._port = listener.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            listener.close()
            for writer in list(self._open):
                writer.transport.abort()
            await within(5, asyncio.gather(*tasks), what="the recorder's connections end")

    def cut_sockets(self) -> None:
        """Cuts every socket that is open, without a word."""
        for writer in self._sockets:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip("\r\n").split("\r\n")
        method, path, _ = first.split(" ", 2)
        named = [line.split(":", 1) for line in lines]
        headers = {name.strip().lower(): value.strip() for name, value in named}
        is_socket = headers.get("upgrade", "").lower() == "websocket"
        dropped = {"connection", "sec-websocket-extensions"} if is_socket else {"connection"}
        kept = [f"{name}:{value}" for name, value in named if name.strip().lower() not in dropped]
        connection = "Connection: Upgrade" if is_socket else "Connection: close"
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        assert "transfer-encoding" not in headers, "a body of unknown length is not read here"
        answer, ask = await asyncio.open_connection(*self._upstream)
        self._open.add(ask)
        if not is_socket:
            # Before it is sent: whoever sees its effect finds it here.
            self.requests.append(Request(method, path, headers, json.loads(body) if body else None))
        ask.write("\r\n".join([first, *kept, connection, "", ""]).encode("latin-1") + body)
        try:
            if not is_socket:
                await _pump(answer, writer)
                return
            self._sockets.add(writer)
            both = [asyncio.ensure_future(_pump(answer, writer)), asyncio.ensure_future(self._frames(reader, ask))]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in both:
                    one.cancel()
                await asyncio.wait(both)
        finally:
            self._sockets.discard(writer)
            self._open.discard(ask)
            ask.close()

    async def _frames(self, reader: asyncio.StreamReader, ask: asyncio.StreamWriter) -> None:
        """Forwards a client's frames and reads the topics that it joins."""
        while True:
            start = await reader.readexactly(2)
            length, extra = start[1] & 0x7F, b""
            if length >= 126:
                extra = await reader.readexactly(2 if length == 126 else 8)
                length = int.from_bytes(extra, "big")
            mask = await reader.readexactly(4)
            masked = await reader.readexactly(length)
            ask.write(start + extra + mask + masked)
            await ask.drain()
            if start[0] & 0x0F == 1:
                text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(masked))
                frame = json.loads(text)
                topic, event = (frame["topic"], frame["event"]) if isinstance(frame, dict) else (frame[2], frame[3])
                if event == "phx_join":
                    self.joins.append(topic)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()
