"""The Python SDK and the Rust SDK play the same scripts, and what reaches the server is compared.

What changes something (posts, marks, contacts) is compared request by request, in order, with its body. What only looks,
and reports of activity, are compared as a set: how often they come depends on time. Idempotency keys and joined topics
are compared as sets too. Every difference that is meant is in `differences.txt` with its reason; one that is not there
fails its story, and so does a line there that no story shows any more.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.cast import Bot, Cast, Person
from harness.contacts import ask
from harness.control import executions, interrupt, play, stop
from harness.plays import SDKS, Play, Player, Script, hears
from harness.recorder import Recorder, Request
from harness.server import Server
from harness.waiting import eventually

LISTED = Path(__file__).with_name("differences.txt")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class Stage:
    """One room with a person and an agent, whose program connects through a recorder."""

    cast: Cast
    ann: Person
    bot: Bot
    room: str
    line: Recorder
    play: Play
    folder: Path
    names: dict[str, str] = field(default_factory=dict)

    def agent(self, script: Script) -> AbstractAsyncContextManager[Player]:
        return self.play(self.line, self.bot, script, self.folder)

    async def live(self, times: int = 1) -> None:
        """Waits until the agent listens in the room."""

        async def joined() -> bool:
            return self.line.joins.count(f"chat_room:{self.room}") >= times

        await eventually(joined, what="the agent listens", within=20)

    async def say(self, text: str) -> str:
        sent = (await self.ann.say(self.room, text, self.bot)).id
        self.names[sent] = f"{{message {sum(name.startswith('{message') for name in self.names.values()) + 1}}}"
        return sent

    async def ends(self, message: str, status: str) -> None:
        await self.ann.settled(self.room, message, self.bot, status, within=20)

    async def shows(self, kind: str) -> None:
        """Waits until an event of that kind is in the room: the two SDKs do not agree on what comes last."""

        async def shown() -> bool:
            return bool(await self.ann.messages(self.room, message_type=kind))

        await eventually(shown, what=f"an event {kind}")

    async def tells(self, text: str, status: str) -> None:
        await self.ends(await self.say(text), status)


Story = Callable[[Stage], Awaitable[None]]
STORIES: dict[str, Story] = {}


def story(tell: Story) -> Story:
    STORIES[tell.__name__] = tell
    return tell


def one_turn(name: str, status: str, *steps: Any, shows: str | None = None) -> None:
    async def tell(stage: Stage) -> None:
        async with stage.agent({"turns": [list(steps)]}):
            await stage.live()
            await stage.tells("Well?", status)
            if shows:
                await stage.shows(shows)

    STORIES[name] = tell


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": {"tool": tool, "arguments": arguments}}


def event(kind: str, **content: Any) -> dict[str, Any]:
    return {"event": {"message_type": kind, "content": json.dumps(content)}}


one_turn("reply", "processed", {"reply": "Hello"})
one_turn("two_replies", "processed", {"reply": "Hello"}, {"reply": "And hello again"})
one_turn("decline", "processed", "decline")
one_turn("settle", "processed", "settle")
one_turn("thought_and_reply", "processed", {"think": "Hm."}, {"reply": "Hello"})
one_turn("thought_only", "failed", {"think": "Hm."}, shows="error")
one_turn("nothing", "failed", shows="error")
one_turn("adapter_fails", "failed", {"fail": "the model said no"}, shows="error")
one_turn("fails_after_a_reply", "failed", {"reply": "Hello"}, {"fail": "the model said no"}, shows="error")
one_turn("tool_that_works", "processed", call("file_ticket", title="A bug"))
one_turn("tool_that_looks", "failed", call("look_up"), shows="error")
one_turn("tool_that_fails", "failed", call("break_down"), shows="error")
one_turn(
    "events",
    "processed",
    event("tool_call", name="look_up", args={}, tool_call_id="c1"),
    event("tool_result", name="look_up", output="nothing", tool_call_id="c1"),
    call("band_send_event", content="Half way", message_type="task"),
    {"reply": "Done"},
)
one_turn("looking_around", "processed", call("band_get_participants"), call("band_lookup_peers"), {"reply": "Seen"})
one_turn("a_new_room", "processed", call("band_create_chatroom"))
UNKNOWN = call("band_send_message", content="Hi", mentions=["@nobody/at-all"])
one_turn("nobody_of_that_name", "processed", UNKNOWN, "decline")
one_turn("arguments_that_do_not_fit", "processed", call("band_send_message", text="Hi"), {"reply": "Sorry"})


@story
async def bringing_somebody_in(stage: Stage) -> None:
    reviewer = await stage.cast.bot(stage.ann, "Reviewer")
    stage.names |= {reviewer.id: "{reviewer}", reviewer.handle: "{reviewer's handle}"}
    added = call("band_add_participant", identifier=f"@{reviewer.handle}")
    asked = call("band_send_message", content="Please look", mentions=[f"@{reviewer.handle}"])
    async with stage.agent({"turns": [[added, asked]]}):
        await stage.live()
        await stage.tells("Get help", "processed")


@story
async def backlog_then_live(stage: Stage) -> None:
    backlog = [await stage.say(f"before {number}") for number in range(3)]
    async with stage.agent({"turns": [[{"reply": "Done"}]]}):
        await stage.ends(backlog[-1], "processed")
        await stage.live()
        await stage.tells("live", "processed")


@story
async def said_while_it_works(stage: Stage) -> None:
    async with stage.agent({"turns": [[{"wait": 1}, {"reply": "Done"}], [{"reply": "Done"}]]}) as player:
        await stage.live()
        await stage.say("first")
        await hears(player, 1)
        await stage.say("second")
        await stage.tells("third", "processed")


@story
async def stop_and_play(stage: Stage) -> None:
    async with stage.agent({"turns": [[{"wait": 3600}], [{"reply": "At last"}]]}) as player:
        await stage.live()
        message = await stage.say("Take your time")
        await hears(player, 1)
        await stop(stage.ann, stage.room)
        await play(stage.ann, stage.room)
        await stage.ends(message, "processed")


@story
async def interrupted(stage: Stage) -> None:
    async with stage.agent({"turns": [[{"wait": 3600}], [{"reply": "Next"}]]}) as player:
        await stage.live()
        message = await stage.say("Take your time")
        await hears(player, 1)
        (execution,) = await executions(stage.ann, stage.bot)
        await interrupt(stage.ann, stage.bot, execution["id"])
        await stage.ends(message, "processed")
        await stage.tells("And now?", "processed")


@story
async def failure_and_restart(stage: Stage) -> None:
    async with stage.agent({"turns": [[{"fail": "the model said no"}]]}):
        await stage.live()
        message = await stage.say("Try this")
        await stage.ends(message, "failed")
        await stage.shows("error")
    async with stage.agent({"turns": [[{"reply": "Done"}]]}):
        await stage.ends(message, "processed")


@story
async def the_connection_breaks(stage: Stage) -> None:
    async with stage.agent({"turns": [[{"reply": "Here"}]]}):
        await stage.live()
        await stage.tells("before", "processed")
        stage.line.cut_sockets()
        await stage.tells("meanwhile", "processed")
        await stage.live(times=2)
        await stage.tells("after", "processed")


@story
async def a_contact_is_let_in(stage: Stage) -> None:
    eve = await stage.cast.person("eve")
    stage.names |= {eve.id: "{eve}", eve.handle: "{eve's handle}"}
    async with stage.agent({"turns": [["decline"]], "contacts": "approve"}):
        await stage.live()
        await stage.tells("live?", "processed")
        stage.names[await ask(eve, stage.bot)] = "{request}"

        async def contacts() -> bool:
            listed = await stage.bot.rest.agent_api_contacts.list_agent_contacts()
            return bool(listed.data)

        await eventually(contacts, what="the request is approved")


@dataclass(frozen=True)
class Trace:
    """What an agent sent, with names in the place of ids."""

    changes: list[str]
    rest: set[str]

    @staticmethod
    def of(stage: Stage) -> Trace:
        names = stage.names | {stage.room: "{room}", stage.ann.id: "{person}", stage.bot.id: "{agent}"}
        names[stage.ann.handle] = "{person's handle}"

        def plain(text: str) -> str:
            for one, name in names.items():
                text = text.replace(one, name)
            return UUID.sub("{id}", text)

        def line(request: Request) -> str:
            body = "" if request.body is None else f" {json.dumps(request.body, sort_keys=True)}"
            return plain(f"{request.method} {request.path}{body}")

        def only_looks(request: Request) -> bool:
            return request.method == "GET" or request.path.endswith("/activity")

        requests = stage.line.requests
        with_key = [plain(f"{one.method} {one.path}") for one in requests if "idempotency-key" in one.headers]
        keyed = {f"with an idempotency key: {one}" for one in with_key}
        claims = {f"claims {one} without having asked for the next message" for one in map(plain, unasked(requests))}
        joins = {f"join {plain(topic)}" for topic in stage.line.joins}
        looks = {line(one) for one in requests if only_looks(one)}
        return Trace([line(one) for one in requests if not only_looks(one)], looks | keyed | claims | joins)


def unasked(requests: list[Request]) -> Iterator[str]:
    """Messages that were claimed when the last look at what is next was before another message's."""
    asked = False
    for one in requests:
        *_, message, last = one.path.split("/")
        if last == "next":
            asked = True
        elif last == "processing":
            if not asked:
                yield message
            asked = False


def differences(python: Trace, rust: Trace) -> Iterator[str]:
    names = {"-": "only python", "+": "only rust"}
    for line in difflib.ndiff(python.changes, rust.changes):
        if line[0] in names:
            yield f"{names[line[0]]}: {line[2:]}"
    yield from (f"only python: {line}" for line in sorted(python.rest - rust.rest))
    yield from (f"only rust: {line}" for line in sorted(rust.rest - python.rest))


SOMETIMES = "sometimes "


def listed() -> dict[str, re.Pattern[str]]:
    """The lines of the list, `*` standing for anything."""
    lines = LISTED.read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith(("#", "="))]
    return {line: re.compile(re.escape(line.removeprefix(SOMETIMES)).replace(r"\*", ".*")) for line in wanted}


# What the stories that ran have shown of the list.
shown: dict[str, set[str]] = {}


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", STORIES)
async def test_both_send_the_same_but_for_what_is_listed(server: Server, name: str, tmp_path: Path) -> None:
    traces: dict[str, Trace] = {}
    for sdk, play in SDKS.items():
        async with Cast(server) as cast, Recorder(server.url).listening() as line:
            ann = await cast.person()
            bot = await cast.bot(ann, "Writer")
            stage = Stage(cast, ann, bot, await ann.open_room(bot), line, play, tmp_path)
            await STORIES[name](stage)
            traces[sdk] = Trace.of(stage)
    # A rule of the Rust SDK, whatever the other one happens to do.
    assert not [line for line in traces["rust"].rest if line.startswith("claims ")]
    found = [f"{name}: {line}" for line in differences(traces["python"], traces["rust"])]
    patterns = listed()
    shown[name] = {line for line, pattern in patterns.items() if any(pattern.fullmatch(one) for one in found)}
    unlisted = [one for one in found if not any(pattern.fullmatch(one) for pattern in patterns.values())]
    assert not unlisted, "differences that are not in differences.txt:\n" + "\n".join(unlisted)


def test_nothing_is_listed_that_no_story_shows() -> None:
    assert shown, "no story has run"
    # A line of one story is judged once that story has run, and a line of any story once all have.
    whole = shown.keys() == STORIES.keys()
    lasting = {
        line for line in listed() if not line.startswith(SOMETIMES) and (whole or line.split(":", 1)[0] in shown)
    }
    stale = lasting - set().union(*shown.values())
    assert not stale, "listed, but no longer true:\n" + "\n".join(sorted(stale))
