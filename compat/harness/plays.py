"""Scripts that the Python SDK and the Rust SDK both play: the same steps, in the same JSON.

The Rust side is the program `crates/agent/examples/scripted.rs`, whose first lines say what a script looks like.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from band.core.protocols import AgentToolsProtocol
from band.core.simple_adapter import SimpleAdapter
from band.core.types import PlatformMessage
from band.platform.event import ContactEvent, ContactRequestReceivedEvent
from band.runtime.contact_tools import ContactTools
from band.runtime.contacts import ContactEventConfig, ContactEventStrategy
from band.runtime.custom_tools import declares_turn_effect, execute_custom_tool
from band.runtime.tools.types import TurnEffect
from pydantic import BaseModel

from harness.cast import Bot
from harness.paths import REPOSITORY
from harness.scripted import TWO_INSTANCES, agent_of, running
from harness.waiting import eventually

Script = dict[str, Any]
PATIENCE_S = 20


class Line(Protocol):
    """Where an agent connects: a server, or a recorder before one."""

    @property
    def url(self) -> str: ...

    @property
    def socket_url(self) -> str: ...


class Player(Protocol):
    """An agent at work."""

    heard: list[dict[str, Any]]


class FileTicket(BaseModel):
    title: str


class Nothing(BaseModel):
    pass


@declares_turn_effect(TurnEffect.ACT)
def file_ticket(ticket: FileTicket) -> str:
    return f"filed: {ticket.title}"


def look_up() -> str:
    return "nothing"


@declares_turn_effect(TurnEffect.ACT)
def break_down() -> str:
    raise RuntimeError("it broke")


TOOLS: dict[str, tuple[type[BaseModel], Callable[..., Any]]] = {
    "file_ticket": (FileTicket, file_ticket),
    "look_up": (Nothing, look_up),
    "break_down": (Nothing, break_down),
}


class Playing(SimpleAdapter[Any]):
    """Plays a script with band-sdk."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._turns = list(script["turns"])
        self.heard: list[dict[str, Any]] = []

    async def on_message(
        self,
        msg: PlatformMessage,
        tools: AgentToolsProtocol,
        history: Any,
        participants_msg: str | None,
        contacts_msg: str | None,
        *,
        is_session_bootstrap: bool,
        room_id: str,
    ) -> None:
        self.heard.append({"turn": msg.id, "content": msg.content, "history": history})
        steps = self._turns.pop(0) if len(self._turns) > 1 else self._turns[0]
        for step in steps:
            await self._play(step, msg, tools)

    async def _play(self, step: Any, msg: PlatformMessage, tools: AgentToolsProtocol) -> None:
        (kind, given), *rest = step.items() if isinstance(step, dict) else [(step, None)]
        assert not rest, step
        match kind:
            case "reply":
                await tools.send_message(given, mentions=[msg.sender_id])
            case "think":
                await tools.send_event(given, "thought")
            case "event":
                await tools.send_event(given["content"], given["message_type"])
            case "decline":
                await tools.no_reply()
            case "settle":
                tools.turn.settle()
            case "wait":
                await asyncio.sleep(given)
            case "fail":
                raise RuntimeError(given)
            case "call" if given["tool"] in TOOLS:
                try:
                    await execute_custom_tool(TOOLS[given["tool"]], given.get("arguments", {}), turn=tools.turn)
                except RuntimeError:
                    pass  # A model would read of it.
            case "call":
                await tools.execute_tool_call_structured(given["tool"], given.get("arguments", {}))
            case _:
                raise ValueError(f"no such step: {step}")


async def _approve(event: ContactEvent, tools: ContactTools) -> None:
    if isinstance(event, ContactRequestReceivedEvent):
        await tools.respond_contact_request("approve", request_id=event.payload.id)


@asynccontextmanager
async def python_agent(line: Line, bot: Bot, script: Script, folder: Path) -> AsyncIterator[Player]:
    """The script played by band-sdk."""
    contacts = None
    if script.get("contacts") == "approve":
        contacts = ContactEventConfig(strategy=ContactEventStrategy.CALLBACK, on_event=_approve)
    adapter = Playing(script)
    async with running(agent_of(line, bot, adapter, TWO_INSTANCES, contacts)):
        yield adapter


class RustPlayer:
    """The program's lines, as they come."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    async def read(self, output: asyncio.StreamReader) -> None:
        while line := await output.readline():
            self.heard.append(json.loads(line))


@asynccontextmanager
async def rust_agent(line: Line, bot: Bot, script: Script, folder: Path) -> AsyncIterator[Player]:
    """The script played by the Rust SDK."""
    path, log = folder / f"{bot.id}.json", folder / f"{bot.id}.log"
    path.write_text(json.dumps(script))
    with log.open("a") as errors:
        process = await asyncio.create_subprocess_exec(
            str(program()),
            str(path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"BANDSTAND_URL": line.url, "BANDSTAND_KEY": bot.api_key, "TMPDIR": str(folder)},
            limit=1 << 24,
        )
    assert process.stdin is not None and process.stdout is not None
    player = RustPlayer()
    reading = asyncio.create_task(player.read(process.stdout))
    try:
        yield player
        process.stdin.close()
        code = await asyncio.wait_for(process.wait(), PATIENCE_S)
        assert code == 0, f"the program ended with {code}\n{log.read_text()}"
        await reading
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        reading.cancel()


Play = Callable[[Line, Bot, Script, Path], AbstractAsyncContextManager[Player]]
SDKS: dict[str, Play] = {"python": python_agent, "rust": rust_agent}


def program() -> Path:
    path = REPOSITORY / "target" / "debug" / "examples" / "scripted"
    assert path.is_file(), f"no program at {path}: cargo build -p bandstand-agent --example scripted"
    return path


async def hears(player: Player, count: int) -> None:
    """Waits until an agent has begun so many turns."""

    async def begun() -> bool:
        return len(player.heard) >= count

    await eventually(begun, what=f"{count} turns begin", within=PATIENCE_S)
