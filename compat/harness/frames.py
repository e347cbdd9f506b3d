"""A socket at the level of frames, to see what the clients hide, with every push checked by band-sdk-core."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode

import band_sdk_core
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from harness.server import Server

# The names that band-sdk-core knows; it raises on any other.
VALIDATED = {
    "message_created",
    "message_updated",
    "room_added",
    "room_removed",
    "room_deleted",
    "participant_added",
    "participant_removed",
    "contact_request_received",
    "contact_request_updated",
    "contact_added",
    "contact_removed",
    "supersede",
    "agent.control",
    "event_created",
}
ANSWER_WITHIN_S = 10.0


class Frame(NamedTuple):
    join_ref: str | None
    ref: str | None
    topic: str
    event: str
    payload: dict[str, Any]


class Socket:
    """One V2 connection. Frames that a wait passes over are kept for later waits."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self._refs = itertools.count(1)
        self._kept: list[Frame] = []
        self.joined: dict[str, str] = {}

    async def send(self, join_ref: str | None, topic: str, event: str, payload: Any = None) -> str:
        """Sends a frame and returns its ref."""
        # Odd refs show whether the server echoes the strings that it was given.
        ref = f"r{next(self._refs)}"
        await self.connection.send(json.dumps([join_ref, ref, topic, event, payload or {}]))
        return ref

    async def reply(self, topic: str, ref: str) -> Frame:
        return await self.wait(lambda frame: (frame.topic, frame.event, frame.ref) == (topic, "phx_reply", ref))

    async def join(self, topic: str) -> Frame:
        """Joins and returns the reply, good or bad."""
        ref = f"j{next(self._refs)}"
        await self.connection.send(json.dumps([ref, ref, topic, "phx_join", {}]))
        reply = await self.reply(topic, ref)
        assert reply.join_ref == ref
        if reply.payload["status"] == "ok":
            self.joined[topic] = ref
        return reply

    async def joins(self, *topics: str) -> None:
        for topic in topics:
            reply = await self.join(topic)
            assert reply.payload["status"] == "ok", reply

    async def pushed(
        self, topic: str, event: str, fits: Callable[[dict[str, Any]], bool] = lambda _: True
    ) -> dict[str, Any]:
        """The payload of the next fitting push."""
        frame = await self.wait(lambda frame: (frame.topic, frame.event) == (topic, event) and fits(frame.payload))
        return frame.payload

    async def wait(self, fits: Callable[[Frame], bool]) -> Frame:
        for number, frame in enumerate(self._kept):
            if fits(frame):
                return self._kept.pop(number)
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                while True:
                    frame = await self._receive()
                    if fits(frame):
                        return frame
                    self._kept.append(frame)
        except TimeoutError:
            raise AssertionError(f"no such frame within {ANSWER_WITHIN_S} s, only {self._kept}") from None

    async def closed(self) -> int | None:
        """Waits for the server to close, and returns its code."""
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                while True:
                    self._kept.append(await self._receive())
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None
        except TimeoutError:
            raise AssertionError(f"not closed within {ANSWER_WITHIN_S} s, only {self._kept}") from None

    def kept(self, topic: str, event: str) -> list[dict[str, Any]]:
        """What was pushed and nobody has waited for so far."""
        return [frame.payload for frame in self._kept if (frame.topic, frame.event) == (topic, event)]

    async def settle(self) -> None:
        """Returns once the server has answered, and so has sent whatever it had sent before."""
        ref = await self.send(None, "phoenix", "heartbeat")
        reply = await self.reply("phoenix", ref)
        assert reply == Frame(None, ref, "phoenix", "phx_reply", {"status": "ok", "response": {}})

    async def _receive(self) -> Frame:
        raw = await self.connection.recv()
        assert isinstance(raw, str), "clients tear down a socket that sends binary frames"
        parts = json.loads(raw)
        assert isinstance(parts, list) and len(parts) == 5, f"not five elements: {raw[:200]}"
        frame = Frame(*parts)
        assert isinstance(frame.payload, dict), raw[:200]
        if not frame.event.startswith("phx_"):
            assert frame.ref is None, f"a push with a ref: {raw[:200]}"
            assert frame.join_ref == self.joined.get(frame.topic), f"a push without its own join_ref: {raw[:200]}"
        if frame.event in VALIDATED:
            # Raises with the list of what is wrong, as the SDK does before it drops the event.
            band_sdk_core.validate_event_payload(frame.event, frame.payload)
        return frame


def url(server: Server, **query: str) -> str:
    return f"{server.socket_url}?{urlencode({'vsn': '2.0.0', **query})}"


@asynccontextmanager
async def open_socket(server: Server, key: str, **query: str) -> AsyncIterator[Socket]:
    async with connect(url(server, **query), additional_headers={"x-api-key": key}, max_size=None) as connection:
        yield Socket(connection)


async def refused_upgrade(server: Server, key: str | None, **query: str) -> tuple[int, dict[str, Any] | None]:
    """The status and body of an upgrade that must be refused."""
    headers = {} if key is None else {"x-api-key": key}
    try:
        async with connect(url(server, **query), additional_headers=headers):
            raise AssertionError("the upgrade was not refused")
    except InvalidStatus as refusal:
        body = refusal.response.body
        return refusal.response.status_code, json.loads(body) if body else None
