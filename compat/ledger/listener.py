"""A bare socket client as a program of its own: it joins a room, and with `takes` marks what it hears as processing.

It prints a JSON line when it listens and for each message that it hears, and does nothing more until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

import httpx
from phoenix_channels_python_client.client import PHXChannelsClient
from phoenix_channels_python_client.phx_messages import ChannelMessage

URL, SOCKET, KEY, AGENT, ROOM = (
    os.environ[name] for name in ("BAND_REST_URL", "BAND_WS_URL", "LISTENER_KEY", "LISTENER_ID", "LISTENER_ROOM")
)


async def main(takes: bool) -> None:
    async def heard(message: ChannelMessage) -> None:
        if str(message.event) != "message_created":
            return
        sent = message.payload["id"]
        if takes:
            async with httpx.AsyncClient(base_url=URL, headers={"x-api-key": KEY}) as rest:
                path = f"/api/v1/agent/chats/{ROOM}/messages/{sent}/processing"
                (await rest.post(path)).raise_for_status()
        print(json.dumps({"heard": sent}), flush=True)

    async with PHXChannelsClient(SOCKET, KEY) as socket:
        await socket.subscribe_to_topic(f"agent_control:{AGENT}")
        await socket.subscribe_to_topic(f"chat_room:{ROOM}", heard)
        print(json.dumps({"listening": ROOM}), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main("takes" in sys.argv[1:]))
