"""The agent that the bench compares with: band-sdk answers whoever mentions it with a fixed text."""

from __future__ import annotations

import asyncio
import os

from band.agent import Agent
from band.core.protocols import AgentToolsProtocol
from band.core.simple_adapter import SimpleAdapter
from band.core.types import PlatformMessage


class Echo(SimpleAdapter):
    """Does nothing but answer."""

    async def on_message(self, msg: PlatformMessage, tools: AgentToolsProtocol, *_: object, **__: object) -> None:
        await tools.send_message("Heard.", mentions=[{"id": msg.sender_id}])


async def main() -> None:
    base = os.environ["BENCH_URL"]
    agent = Agent.create(
        adapter=Echo(),
        agent_id=os.environ["BENCH_AGENT"],
        api_key=os.environ["BENCH_KEY"],
        rest_url=base,
        ws_url=base.replace("http", "ws", 1) + "/api/v1/socket/websocket",
    )
    await agent.run()


asyncio.run(main())
