"""The bare Phoenix client of PyPI (0.3.1 and 0.4.1), with its messages collected in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from phoenix_channels_python_client.client import PHXChannelsClient
from phoenix_channels_python_client.client_types import ReconnectPolicy
from phoenix_channels_python_client.phx_messages import ChannelMessage

from harness.server import Server

# Coming back at once, so that a story about a restart does not take half a minute.
IMPATIENT = ReconnectPolicy(
    base_delay_s=0.05,
    max_delay_s=0.2,
    service_restart_min_delay_s=0.0,
    service_restart_max_delay_s=0.1,
    rapid_first_min_delay_s=0.0,
    rapid_second_min_delay_s=0.0,
)


class Inbox:
    """What a topic has pushed, in order of arrival."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[ChannelMessage] = asyncio.Queue()

    async def __call__(self, message: ChannelMessage) -> None:
        await self._messages.put(message)

    async def next(self, within: float = 10.0) -> tuple[str, dict[str, Any]]:
        """The next push, whatever it is."""
        try:
            async with asyncio.timeout(within):
                message = await self._messages.get()
        except TimeoutError:
            raise AssertionError(f"nothing was pushed within {within} s") from None
        return str(message.event), message.payload

    async def expect(
        self, event: str, fits: Callable[[dict[str, Any]], bool] = lambda _: True, within: float = 10.0
    ) -> dict[str, Any]:
        """The next push of that name that fits; others are passed over."""
        passed: list[str] = []
        try:
            async with asyncio.timeout(within):
                while True:
                    message = await self._messages.get()
                    if str(message.event) == event and fits(message.payload):
                        return message.payload
                    passed.append(str(message.event))
        except TimeoutError:
            raise AssertionError(f"no fitting {event} within {within} s, only {passed}") from None

    @property
    def empty(self) -> bool:
        return self._messages.empty()


def client(
    server: Server, api_key: str, *, key_in: str = "query", agent_id: str | None = None, **options: Any
) -> PHXChannelsClient:
    """The bare client with its key in the query, as it sends it by itself, or in the header, as band-sdk has it do."""
    url = server.socket_url if agent_id is None else f"{server.socket_url}?{urlencode({'agent_id': agent_id})}"
    if key_in == "header":
        options["additional_headers"] = {"x-api-key": api_key}
    return PHXChannelsClient(url, api_key, reconnect_policy=IMPATIENT, **options)
