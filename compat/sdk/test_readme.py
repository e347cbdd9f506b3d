"""The README's first five minutes, as it tells them: its program and its commands are run."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

from harness.server import Server
from harness.waiting import eventually

README = Path(__file__).parents[2] / "README.md"
# Longer than anything here takes; a failure, not a hang.
PATIENCE_S = 60


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)


def program_of(server: Server, agent_id: str, key: str) -> str:
    """The README's program with this server and agent in the place of its dots."""
    (program,) = blocks("python")
    program = program.replace('agent_id="…"', f'agent_id="{agent_id}"').replace('"band_a_…"', f'"{key}"')
    program = program.replace("http://127.0.0.1:4000", server.url)
    return program.replace("ws://127.0.0.1:4000/api/v1/socket/websocket", server.socket_url)


async def test_the_first_five_minutes(own_server: Server, tmp_path: Path) -> None:
    agent = own_server.add_agent("Echo")
    path = tmp_path / "agent.py"
    path.write_text(program_of(own_server, agent.id, agent.api_key))
    running = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        commands = next(block for block in blocks("sh") if "$BAND_REST_URL" in block)
        environment = os.environ | {
            "BAND_REST_URL": own_server.url,
            "BAND_API_KEY": own_server.owner_key,
            "ECHO_ID": agent.id,
        }
        run = ["bash", "-euc", commands]
        done = await asyncio.to_thread(
            subprocess.run, run, capture_output=True, text=True, env=environment, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done.stderr
        assert "hello" in done.stdout

        async def answered() -> bool:
            listed = await asyncio.to_thread(history, own_server, done.stdout)
            return "You said: " in listed

        await eventually(answered, what="the answer of the README's program", within=PATIENCE_S)
    finally:
        running.terminate()
        await asyncio.to_thread(running.wait, PATIENCE_S)


def history(server: Server, said: str) -> str:
    """What is in the room that the commands made, asked for as the README does."""
    room = re.search(r'"chat_room_id":"([^"]+)"', said)
    assert room, said
    url = f"{server.url}/api/v1/me/chats/{room.group(1)}/messages"
    asked = ["curl", "-sf", "-H", f"x-api-key: {server.owner_key}", url]
    return subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
