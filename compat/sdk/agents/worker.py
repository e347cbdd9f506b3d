"""An agent as a program of its own: `worker.py stuck` never ends its turn, `worker.py replying` answers.

It prints a JSON line when it begins to work on a message, and fails when a reply of the server broke the contract.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from band.agent import Agent
from band.core.protocols import AgentToolsProtocol
from band.core.types import PlatformMessage

from harness.contract import Oracle
from harness.scripted import Scripted, Turn, never_ending, replying

MANNERS: dict[str, Turn] = {"stuck": never_ending, "replying": replying("Done at last")}


def announced(turn: Turn) -> Turn:
    async def announce(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        print(json.dumps({"working": message.id}), flush=True)
        await turn(message, tools)

    return announce


async def main(manner: str) -> None:
    agent = Agent.create(
        adapter=Scripted(announced(MANNERS[manner])),
        agent_id=os.environ["WORKER_AGENT_ID"],
        api_key=os.environ["WORKER_API_KEY"],
    )
    with Oracle().watching() as oracle:
        await agent.run(shutdown_timeout=10)
        violations = oracle.take()
    assert not violations, "replies that break the contract:\n" + "\n".join(violations)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
