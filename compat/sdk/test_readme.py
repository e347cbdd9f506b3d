"""The README's first five minutes, as it tells them: its program and its commands are run."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.paths import binary
from harness.server import Credentials, Server
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


def test_the_program_is_the_one_that_is_printed(own_server: Server) -> None:
    said = own_server.said("agent", "add", "Echo")
    (agent_id,) = re.findall(r"^  id   (\S+)$", said, re.MULTILINE)
    (key,) = re.findall(r"^  key  (\S+) ", said, re.MULTILINE)
    printed = said[said.index("import asyncio") :]
    assert printed.strip() == program_of(own_server, agent_id, key).strip()
    # How it is run is told in both places, in the same words.
    for line in (line.strip() for line in said.splitlines() if "agent.py" in line and "venv" in line):
        assert line in README.read_text(), line


@contextmanager
def running(server: Server, folder: Path) -> Iterator[Credentials]:
    """An agent that is the README's program."""
    agent = server.add_agent("Echo")
    path = folder / "agent.py"
    path.write_text(program_of(server, agent.id, agent.api_key))
    program = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield agent
    finally:
        program.terminate()
        program.wait(PATIENCE_S)


async def test_over_the_api(own_server: Server, tmp_path: Path) -> None:
    with running(own_server, tmp_path) as agent:
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


def history(server: Server, said: str) -> str:
    """What is in the room that the commands made, asked for as the README does."""
    room = re.search(r'"chat_room_id":"([^"]+)"', said)
    assert room, said
    url = f"{server.url}/api/v1/me/chats/{room.group(1)}/messages"
    asked = ["curl", "-sf", "-H", f"x-api-key: {server.owner_key}", url]
    return subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


async def test_from_the_terminal(own_server: Server, tmp_path: Path) -> None:
    """What is typed before `chat`, whose own stories are told elsewhere; then the same room by other commands."""
    (block,) = (block for block in blocks("console") if "bandstand login" in block)
    typed = [shlex.split(line[2:], comments=True) for line in block.splitlines() if line.startswith("$ ")]
    login, new_room, chat = ([word.replace("http://127.0.0.1:4000", own_server.url) for word in line] for line in typed)
    room = chat[-1]

    async def run(*words: str, stdin: str = "") -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("BANDSTAND_")}
        done = await asyncio.to_thread(
            subprocess.run,
            [str(binary()), *words],
            input=stdin,
            capture_output=True,
            text=True,
            env=inherited | {"XDG_CONFIG_HOME": str(tmp_path / "config")},
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with running(own_server, tmp_path):
        assert (login[0], new_room[0], chat[:2]) == ("bandstand", "bandstand", ["bandstand", "chat"])
        await run(*login[1:], stdin=own_server.owner_key)
        await run(*new_room[1:])
        await run("send", room, "hello there")

        async def answered() -> bool:
            return "You said: " in await run("tail", room, "--no-follow")

        await eventually(answered, what="the answer of the README's program", within=PATIENCE_S)
