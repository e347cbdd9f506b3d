"""`bandstand run` with tools of a server that the official Python package makes, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from harness.cast import Bot, Cast, Person
from harness.paths import COMPAT, binary
from harness.server import Server
from harness.waiting import eventually
from mcp_tools.model import Model

TIDES = COMPAT / "mcp_tools" / "tides.py"
KEY = "band-compat-secret-of-the-model"


@pytest.fixture
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


def stdio() -> str:
    return f'[[mcp]]\nname = "tides"\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(TIDES))}]\n'


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@asynccontextmanager
async def over_http() -> AsyncIterator[str]:
    """The server at an address; its table."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(TIDES), str(port)])

    async def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        await eventually(listens, what="the MCP server listens")
        yield f'[[mcp]]\nname = "tides"\nurl = "http://127.0.0.1:{port}/mcp"\n'
    finally:
        process.terminate()
        process.wait(10)


class Agent:
    """`bandstand run` as a child process."""

    def __init__(self, server: Server, bot: Bot, model: Model, folder: Path, servers: str, *flags: str) -> None:
        self.file = folder / "agent.toml"
        self.file.write_text(
            f'url = "{server.url}"\n[model]\nname = "scripted"\nbase_url = "{model.url}"\nkey_env = "MODEL_KEY"\n'
            f"stream = false\n{servers}"
        )
        self.log = folder / "agent.log"
        self.environment = {**os.environ, "BANDSTAND_AGENT_KEY": bot.api_key, "MODEL_KEY": KEY, "NO_PROXY": "*"}
        self.flags = flags

    def start(self) -> None:
        with self.log.open("a") as log:
            command = [str(binary()), "run", str(self.file), "--log-level", "debug,rmcp=warn", *self.flags]
            self.process = subprocess.Popen(command, stderr=log, env=self.environment)

    def check(self) -> subprocess.CompletedProcess[str]:
        command = [str(binary()), "run", str(self.file), "--check"]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment, timeout=60)

    def children(self) -> list[int]:
        found = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(word) for children in found for word in children.read_text().split()]

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) == 0, self.log.read_text()[-4000:]


@asynccontextmanager
async def running(agent: Agent) -> AsyncIterator[Agent]:
    agent.start()
    try:
        yield agent
    finally:
        if agent.process.poll() is None:
            await asyncio.to_thread(agent.stop)


async def turn(ann: Person, bot: Bot, room: str, question: str) -> None:
    asked = await ann.say(room, question, bot)
    await ann.settled(room, asked.id, bot, "processed")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_every_kind_of_result_reaches_the_model(
    transport: str, server: Server, cast: Cast, ann: Person, bot: Bot, model: Model, tmp_path: Path
) -> None:
    async def story(servers: str) -> None:
        room = await ann.open_room(bot)
        policy = '[mcp.tools."tide.look/up"]\neffect = "act"\n'
        model.replies = [
            [
                ("tide_look_up", {"port": "Kestrel"}),
                ("heights", {"ports": ["Kestrel", "Heron"]}),
                ("only_structured", {}),
                ("chart", {}),
                ("papers", {}),
                ("fails", {}),
                ("tide_look_up", {}),
            ],
            "It is 5 m.",
            [("grow", {})],
            "Done.",
        ]
        async with running(Agent(server, bot, model, tmp_path, servers + policy)):
            await turn(ann, bot, room, "How high is the water?")
            results = list(model.results().values())
            assert results[0] == "Kestrel: 5 m"
            assert "Heron" in str(results[1]) and str(results[1]).count("Heron") == 1
            assert "One port." in str(results[2]) and '"Kestrel"' in str(results[2])
            assert "The chart:" in str(results[3])
            assert "iVBORw0KGgo" in json.dumps(model.asked[-1]["messages"])
            assert "high at noon" in str(results[4]) and "tide://heron" in str(results[4])
            assert "[tool_error]" in str(results[5]) and "no gauge at Kestrel" in str(results[5])
            assert "port: Field required" in str(results[6])
            # The registry's own name stands in the room.
            rows = await ann.rest.human_api_messages.list_my_chat_messages(room, message_type="tool_call")
            assert any('"tide.look/up"' in row.content for row in rows.data)

            await turn(ann, bot, room, "Grow.")

            async def grown() -> bool:
                model.replies = ["Well."]
                await turn(ann, bot, room, "And now?")
                return "wind" in model.offered()

            await eventually(grown, what="the new tool is offered")

    if transport == "stdio":
        await story(stdio())
    else:
        async with over_http() as servers:
            await story(servers)


@pytest.mark.timeout(120)
async def test_a_program_that_dies_is_started_again_and_none_is_left(
    server: Server, cast: Cast, ann: Person, bot: Bot, model: Model, tmp_path: Path
) -> None:
    room = await ann.open_room(bot)
    agent = Agent(server, bot, model, tmp_path, stdio())
    model.replies = [[("environment", {})], "So.", [("dies", {})], [("tide_look_up", {"port": "K"})], "It is 5 m."]
    async with running(agent):
        await turn(ann, bot, room, "What do you know?")
        (known,) = model.results().values()
        names = str(known).split()
        assert "PATH" in names and not {"BANDSTAND_AGENT_KEY", "MODEL_KEY"} & set(names)
        await turn(ann, bot, room, "How high is the water?")
        died, looked = list(model.results().values())[-2:]
        assert "[tool_error]" in str(died) and "the connection was lost" in str(died)
        assert looked == "K: 5 m"
        (child,) = agent.children()
    assert not Path(f"/proc/{child}").exists()


def test_check_lists_the_tools(server: Server, tmp_path: Path, model: Model) -> None:
    class Nobody:
        api_key = "band_a_nobody"

    good = stdio() + 'prefix = "sea."\ndeny = ["dies"]\n[mcp.tools.heights]\napproval = "ask"\n'
    said = Agent(server, Nobody(), model, tmp_path, good).check()  # type: ignore[arg-type]
    assert said.returncode == 0, said.stderr
    lines = [line.split() for line in said.stdout.splitlines()]
    assert ["sea.tide.look/up", "observe", "allow", "60", "s"] in lines
    assert ["sea.heights", "observe", "ask", "60", "s"] in lines
    assert "sea.dies" not in said.stdout

    broken = f'[[mcp]]\nname = "gone"\ncommand = {json.dumps(sys.executable)}\nargs = ["-c", "1/0"]\n'
    said = Agent(server, Nobody(), model, tmp_path, broken).check()  # type: ignore[arg-type]
    assert said.returncode == 1
    assert "`gone`" in said.stderr and "ZeroDivisionError" in said.stderr

    said = Agent(server, Nobody(), model, tmp_path, stdio() + stdio().replace('"tides"', '"twin"')).check()  # type: ignore[arg-type]
    assert said.returncode == 2
    assert "(mcp:twin) has the name of another (mcp:tides)" in said.stderr


@pytest.mark.timeout(120)
async def test_a_trace_tells_where_the_meaning_changed(
    server: Server, cast: Cast, ann: Person, bot: Bot, model: Model, tmp_path: Path
) -> None:
    room = await ann.open_room(bot)
    model.replies = [[("tide_look_up", {"port": "Kestrel"}), ("fails", {})], "It is 5 m.", "As before."]
    trace = tmp_path / "trace"
    async with running(Agent(server, bot, model, tmp_path, stdio(), "--trace", str(trace))):
        await turn(ann, bot, room, "How high is the water?")
        await turn(ann, bot, room, "And now?")

    def diff(folder: Path) -> subprocess.CompletedProcess[str]:
        command = [str(binary()), "transcript", "diff", str(folder), "--json"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    steps = sorted(trace.glob("*/*/*"))
    assert [len(list(step.iterdir())) for step in steps] == [8, 8, 8]
    text = "".join(path.read_text() for path in trace.glob("*/*/*/*"))
    assert KEY not in text and bot.api_key not in text
    said = diff(trace)
    assert said.returncode == 0, said.stdout

    # A result that is lost on its way back is found, and where.
    lost = steps[0] / "6-replayed-payload.json"
    payload = json.loads(lost.read_text())
    payload["messages"] = [row for row in payload["messages"] if "Kestrel: 5 m" not in str(row.get("content"))]
    lost.write_text(json.dumps(payload))
    said = diff(steps[0])
    assert said.returncode == 1
    (step,) = json.loads(said.stdout)["steps"]
    changed = [(pair["from"], pair["to"]) for pair in step["stages"] if not pair["same"]]
    assert changed == [("parsed", "replayed payload")], said.stdout
