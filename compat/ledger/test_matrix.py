"""Each cause with each kind of client: the right reason first, and never a wrong one.

The table in `docs/ledger.md` is written from `causes.py`, which these tests hold the server to; with
`LEDGER_MATRIX_UPDATE=1` it is written anew.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from band.core.protocols import AgentToolsProtocol
from band.core.types import PlatformMessage
from band.runtime.sessionconfig import SessionConfig
from phoenix_channels_python_client.client import PHXChannelsClient

from harness.cast import Bot, Cast, Person, message
from harness.channels import Inbox, client
from harness.control import stop
from harness.mcp_program import band_mcp
from harness.paths import REPOSITORY
from harness.scripted import Scripted, agent_of, declining, never_ending, raising, replying, running, subscribed
from harness.server import Server
from harness.waiting import eventually, within
from ledger.causes import BARE, CAUSES, CLIENTS, SDK, Answer, Cause, Not, table
from ledger.programs import Program, listener, stuck_worker

DOCUMENT = REPOSITORY / "docs" / "ledger.md"
BEGIN, END = "<!-- the fault matrix: written by a test -->", "<!-- end of the fault matrix -->"

# Longer than band-sdk's reports are apart, and short enough to wait for.
OPTIONS = ("--activity-ttl", "4s")
SILENT = SessionConfig(enable_working_state=False)
QUIET_FOR_S = 30.0


@dataclass
class Story:
    """One cause with one client."""

    server: Server
    cast: Cast
    ann: Person
    bot: Bot
    other: Bot
    room: str
    folder: Path
    open: AsyncExitStack
    asked: str = ""
    row: dict[str, Any] | None = None

    async def says(self, content: str = "please look", *mentioned: Bot) -> str:
        """Ann posts the message that the story is about."""
        self.asked = (await self.ann.say(self.room, content, *(mentioned or (self.bot,)))).id
        return self.asked

    async def deliveries(self) -> dict[str, Any]:
        """What the ledger says of the message for the bot."""
        path = f"/api/v1/me/chats/{self.room}/messages/{self.asked}/deliveries"
        reply = await self.ann.raw.get(path, params={"participant": self.bot.id})
        assert reply.status_code == 200, reply.text
        (row,) = reply.json()["data"]
        return row

    async def answer(self) -> Answer:
        row = await self.deliveries()
        return Answer(row["stage"], row["reason"] and row["reason"]["code"])

    async def until(self, stage: str) -> None:
        async def reached() -> bool:
            return (await self.answer()).stage == stage

        await eventually(reached, what=f"the message is {stage}", within=QUIET_FOR_S)

    async def band_agent(self, adapter: Scripted, session: SessionConfig | None = None) -> Any:
        """A band-sdk agent that listens in the room."""
        agent = agent_of(self.server, self.bot, adapter, session=session)
        await self.open.enter_async_context(running(agent))
        await subscribed(agent, self.room)
        return agent

    async def socket(self, *, listens: bool = True) -> tuple[PHXChannelsClient, Inbox]:
        """A bare socket client."""
        inbox = Inbox()
        socket = await self.open.enter_async_context(client(self.server, self.bot.api_key))
        await socket.subscribe_to_topic(f"agent_control:{self.bot.id}")
        if listens:
            await socket.subscribe_to_topic(f"chat_room:{self.room}", inbox)
        return socket, inbox

    async def mcp(self) -> Any:
        """`band-mcp` with the bot's key, which has spoken to the server."""
        call = await self.open.enter_async_context(band_mcp(self.server, self.folder, agent=self.bot))
        assert (await call("health_check")).startswith("OK")
        return call

    async def any_program(self, kind: str) -> None:
        """A client of the kind, up and running."""
        match kind:
            case "band-sdk":
                await self.band_agent(Scripted(replying()))
            case "bare socket":
                await self.socket()
            case _:
                await self.mcp()

    async def takes(self) -> None:
        """What a bare client does to begin its work."""
        await self.bot.rest.agent_api_messages.mark_agent_message_processing(self.room, self.asked)


Told = Callable[[Story, str], Awaitable[None]]


async def not_mentioned(story: Story, kind: str) -> None:
    await story.any_program(kind)
    await story.says("not for you", story.other)


async def reference(story: Story, kind: str) -> None:
    await story.any_program(kind)
    mentions = [{"id": story.other.id}, {"id": story.bot.id, "kind": "reference"}]
    body = {"message": {"content": "ask them about you", "mentions": mentions}}
    reply = await story.ann.raw.post(f"/api/v1/me/chats/{story.room}/messages", json=body)
    assert reply.status_code == 201, reply.text
    story.asked = reply.json()["data"]["id"]


async def joined_later(story: Story, kind: str) -> None:
    await story.ann.remove(story.room, story.bot)
    story.room = await story.ann.open_room(story.other)
    await story.says("before you came", story.other)
    await story.ann.add(story.room, story.bot)
    await story.any_program(kind)


async def left_before(story: Story, kind: str) -> None:
    await story.any_program(kind)
    await story.ann.remove(story.room, story.bot)
    await story.says("after you left", story.other)


async def never_started(story: Story, kind: str) -> None:
    await story.says()


async def socketless(story: Story, kind: str) -> None:
    call = await story.mcp()
    await story.says()
    # It is alive, and even speaks in the room.
    await call("band_send_message", chat_id=story.room, content="Good morning", mentions=[story.ann.handle])


async def ended(story: Story, kind: str) -> None:
    await story.any_program(kind)
    await story.open.aclose()
    await story.says()


async def killed(story: Story, kind: str) -> None:
    program = await at_work(story, kind)
    await program.dies()


async def server_crashed(story: Story, kind: str) -> None:
    program = await at_work(story, kind)
    # What is seen is written within a quarter of a second; the crash comes after that.
    path = f"/api/v1/me/chats/{story.room}/participants"
    for _ in range(40):
        await asyncio.gather(story.ann.raw.get(path), asyncio.sleep(0.02))
    await asyncio.to_thread(story.server.kill)
    await program.dies()
    await asyncio.to_thread(story.server.start)


async def at_work(story: Story, kind: str) -> Program:
    """A program of its own that has begun to work on the message."""
    if kind == SDK:
        await story.says()
        program = await story.open.enter_async_context(stuck_worker(story.server, story.bot))
        assert await program.says() == {"working": story.asked}
        return program
    program = await story.open.enter_async_context(listener(story.server, story.bot, story.room, takes=True))
    await story.says()
    assert await program.says() == {"heard": story.asked}
    return program


async def busy(story: Story, kind: str) -> None:
    if kind == SDK:
        adapter = Scripted(never_ending)
        await story.band_agent(adapter)
        first = await story.says("first")
        await heard(adapter, first)
    else:
        _, inbox = await story.socket()
        first = await story.says("first")
        await inbox.expect("message_created")
        await story.takes()
    await story.says("second")
    await story.until("pushed")
    story.row = await story.deliveries()
    assert story.row["reason"]["evidence"]["busy_with"] == first


async def heard(adapter: Scripted, sent: str) -> None:
    async def has_heard() -> bool:
        return sent in adapter.heard_ids

    await eventually(has_heard, what="the agent hears the message")


async def deaf(story: Story, kind: str) -> None:
    await story.socket(listens=False)
    await story.says()
    assert "reached_at" not in (await story.deliveries())["reason"]["evidence"]


async def idle(story: Story, kind: str) -> None:
    _, inbox = await story.socket()
    await story.says()
    await inbox.expect("message_created")


async def working(story: Story, kind: str) -> None:
    if kind == SDK:
        adapter = Scripted(never_ending)
        await story.band_agent(adapter)
        await heard(adapter, await story.says())
        return
    await idle(story, kind)
    await story.takes()
    path = f"/api/v1/agent/chats/{story.room}/activity"
    assert (await story.bot.raw.post(path, json={"working": True})).json() == {"data": {"working": True}}


async def hanging(story: Story, kind: str) -> None:
    if kind == SDK:
        adapter = Scripted(never_ending)
        await story.band_agent(adapter, SILENT)
        await heard(adapter, await story.says())
        return
    await idle(story, kind)
    await story.takes()


async def stopped(story: Story, kind: str) -> None:
    await story.any_program(kind)
    await stop(story.ann, story.room)
    await story.says()


async def stopped_at_work(story: Story, kind: str) -> None:
    await working(story, kind)
    await stop(story.ann, story.room)


async def replaced(story: Story, kind: str) -> None:
    if kind == SDK:
        await at_work(story, kind)
    else:
        await story.open.enter_async_context(listener(story.server, story.bot, story.room))
        await story.says()
        await story.until("pushed")
    await story.socket(listens=False)


async def refused(story: Story, kind: str) -> None:
    """Somebody hammers the server with the agent's key, so that its own connection is refused as well."""
    await story.says()
    where = urlsplit(story.server.url)
    # None is a handshake, so that none of them is let in.
    request = (
        f"GET /api/v1/socket/websocket?vsn=2.0.0 HTTP/1.1\r\nhost: {where.netloc}\r\n"
        f"x-api-key: {story.bot.api_key}\r\nconnection: close\r\n\r\n"
    )

    async def hammer() -> None:
        while True:
            reader, writer = await asyncio.open_connection(where.hostname, where.port)
            writer.write(request.encode())
            await reader.read()
            writer.close()

    hammering = asyncio.create_task(hammer())
    story.open.callback(hammering.cancel)
    if kind == SDK:
        starting = asyncio.create_task(agent_of(story.server, story.bot, Scripted(replying())).start())
    else:
        starting = asyncio.create_task(story.socket())
    story.open.push_async_callback(cancelled, starting)


async def limited(story: Story, kind: str) -> None:
    """It has used up what it may ask in a minute when the message comes."""
    event = {"event": {"content": "thinking", "message_type": "thought"}}
    path = f"/api/v1/agent/chats/{story.room}/events"
    await story.any_program(kind)

    async def used_up() -> bool:
        return (await story.bot.raw.post(path, json=event)).status_code == 429

    await eventually(used_up, what="the server refuses it")
    await story.says()
    if kind == BARE:
        await story.until("pushed")
    if kind != SDK:
        # band-sdk claims the message by itself, and is refused.
        assert (await story.bot.raw.post(path, json=event)).status_code == 429


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def failed(story: Story, kind: str) -> None:
    if kind == SDK:
        await story.band_agent(Scripted(raising(RuntimeError("the model said no"))))
        await story.says()
    else:
        await idle(story, kind)
        await story.takes()
        await story.bot.rest.agent_api_messages.mark_agent_message_failed(
            story.room, story.asked, error="the model said no"
        )
    await story.until("failed")
    assert "the model said no" in (await story.deliveries())["summary"]


async def declined(story: Story, kind: str) -> None:
    if kind == SDK:
        await story.band_agent(Scripted(declining))
        await story.says()
        await story.until("processed")
        # It keeps the decline to itself; what the server sees is that nothing was said.
        outcome = {"declined": False, "reason": None, "replied": False}
    else:
        await idle(story, kind)
        await story.takes()
        path = f"/api/v1/agent/chats/{story.room}/messages/{story.asked}/processed"
        body = {"outcome": "declined", "reason": "not for me"}
        assert (await story.bot.raw.post(path, json=body)).status_code == 200
        outcome = {"declined": True, "reason": "not for me", "replied": False}
    assert (await story.deliveries())["outcome"] == outcome


async def replied(story: Story, kind: str) -> None:
    if kind == SDK:
        await story.band_agent(Scripted(replying()))
        await story.says()
        await story.until("processed")
    else:
        await idle(story, kind)
        await story.takes()
        await story.bot.rest.agent_api_messages.create_agent_chat_message(
            story.room, message=message("here you are", story.ann)
        )
        await story.bot.rest.agent_api_messages.mark_agent_message_processed(story.room, story.asked)
    assert (await story.deliveries())["outcome"]["replied"] is True


async def lapsed(story: Story, kind: str) -> None:
    await killed(story, kind)


async def expired(story: Story, kind: str) -> None:
    await story.says()


async def exhausted(story: Story, kind: str) -> None:
    if kind == SDK:
        await story.band_agent(Scripted(raising(RuntimeError("the model said no"))))
        await story.says()
    else:
        await idle(story, kind)
        await story.takes()
        await story.bot.rest.agent_api_messages.mark_agent_message_failed(
            story.room, story.asked, error="the model said no"
        )


async def removed(story: Story, kind: str) -> None:
    # Its program comes too late.
    await story.says()
    await story.ann.remove(story.room, story.bot)
    match kind:
        case "band-sdk":
            await story.open.enter_async_context(running(agent_of(story.server, story.bot, Scripted(replying()))))
        case "bare socket":
            await story.socket(listens=False)
        case _:
            await story.mcp()


STORIES: dict[str, Told] = {
    told.__name__: told
    for told in (
        not_mentioned,
        reference,
        joined_later,
        left_before,
        never_started,
        socketless,
        ended,
        killed,
        server_crashed,
        busy,
        deaf,
        idle,
        working,
        hanging,
        stopped,
        stopped_at_work,
        replaced,
        refused,
        limited,
        failed,
        declined,
        replied,
        lapsed,
        expired,
        exhausted,
        removed,
    )
}
# Those that need a server of their own, and how it is set up.
OWN_SERVER = {
    "server_crashed": OPTIONS,
    "refused": (*OPTIONS, "--upgrades-per-second", "1"),
    "lapsed": (*OPTIONS, "--lease-gone", "5s"),
    "expired": (*OPTIONS, "--dead-letter-age", "2s"),
    "exhausted": (*OPTIONS, "--dead-letter-attempts", "1"),
    "limited": (*OPTIONS, "--agent-writes-per-minute", "3"),
}


@pytest.fixture(scope="session")
def matrix_server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    server = Server(tmp_path_factory.mktemp("matrix"), *OPTIONS).start()
    yield server
    server.close()


@asynccontextmanager
async def story_on(server: Server, folder: Path) -> AsyncIterator[Story]:
    async with Cast(server) as cast, AsyncExitStack() as programs:
        ann = await cast.person()
        bot, other = await cast.bot(ann, "Writer"), await cast.bot(ann, "Other")
        room = await ann.open_room(bot, other)
        yield Story(server, cast, ann, bot, other, room, folder, programs)


CELLS = [
    pytest.param(cause, kind, id=f"{cause.key}-{kind.replace(' ', '-')}")
    for cause in CAUSES
    for kind in CLIENTS
    if isinstance(cause.answers[kind], Answer)
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("cause", "kind"), CELLS)
async def test_the_right_reason_comes_first(
    matrix_server: Server, tmp_path: Path, cause: Cause, kind: str
) -> None:
    right = cause.answers[kind]
    own = OWN_SERVER.get(cause.key)
    server = matrix_server if own is None else Server(tmp_path / "server", *own)
    try:
        if own is not None:
            (tmp_path / "server").mkdir()
            server.start()
        async with story_on(server, tmp_path) as story:
            await within(60, STORIES[cause.key](story, kind), what=f"{cause.text} ({kind})")
            said: list[Answer] = []

            async def is_right() -> bool:
                said.append(await story.answer())
                return said[-1] == right

            await eventually(is_right, what=f"{cause.text}: {right}, not {said[-1:]}", within=QUIET_FOR_S)
            wrong = {str(one) for one in said if one != right and one not in cause.before}
            assert not wrong, f"wrong reasons on the way to {right}: {wrong}"
            row = await story.deliveries()
            # The summary is the same answer, and unknown is never shown as fine.
            assert f"@{story.bot.handle}" in row["summary"], row
            assert row["verdict"] != "done" or right.stage == "processed", row
    finally:
        if own is not None:
            server.close()


def test_every_cause_has_its_story() -> None:
    assert STORIES.keys() == {cause.key for cause in CAUSES}
    assert len(CAUSES) >= 12
    for cause in CAUSES:
        assert cause.answers.keys() == set(CLIENTS)
        assert any(not isinstance(answer, Not) for answer in cause.answers.values())


def test_the_table_in_the_documentation_is_this_one() -> None:
    text = DOCUMENT.read_text()
    section = re.compile(f"({re.escape(BEGIN)}\n).*?({re.escape(END)})", re.DOTALL)
    assert section.search(text), f"{DOCUMENT} has no place for the table"
    written = section.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", text)
    if os.environ.get("LEDGER_MATRIX_UPDATE"):
        DOCUMENT.write_text(written)
        text = written
    assert text == written, "run it with LEDGER_MATRIX_UPDATE=1"
