"""An agent of `bandstand run` in a room, whose model is behind LiteLLM's proxy.

Each of the three APIs that the proxy offers stands before each of the three that a model may have, streamed and
not. One story goes through all of them: parallel calls, of which two fail; the results go back; an answer; then server
and agent start anew, and the model is shown what was before. The model refuses a history with a call or a result alone.

What the proxy makes of a history is compared with what our agent sent. Every difference is in `bends.txt`; one that is
not there fails its story, and so does a line there that its story does not show any more.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.cast import Bot, Cast, Person
from harness.litellm_proxy import KEY, LiteLlm
from harness.paths import binary
from harness.recorder import Recorder
from harness.scripted_model import Asked, Part, ScriptedModel, call, does, refuses, says, text
from harness.server import Server
from harness.waiting import within

APIS = ["openai.chat", "openai.responses", "anthropic"]
BENDS = Path(__file__).with_name("bends.txt")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def models(url: str) -> dict[str, dict[str, Any]]:
    """How LiteLLM is told to speak to the model: one name for each of the model's APIs."""
    openai = {"api_base": f"{url}/v1", "api_key": "none"}
    return {
        # A server like vLLM has Responses as well, which the proxy would ask where it can.
        "openai.chat": {"model": "hosted_vllm/scripted", "use_chat_completions_api": True, **openai},
        "openai.responses": {"model": "openai/responses/scripted", **openai},
        "anthropic": {"model": "anthropic/claude-scripted", "api_base": url, "api_key": "none"},
    }


@dataclass
class Stand:
    """Server, proxy and model; they are started once for all stories."""

    server: Server
    proxy: LiteLlm
    model: ScriptedModel


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    folder = tmp_path_factory.mktemp("litellm")
    model = ScriptedModel()
    try:
        proxy = LiteLlm(folder, models(model.url))
        try:
            server = Server(folder).start()
            yield Stand(server, proxy, model)
            server.close()
        finally:
            proxy.close()
    finally:
        model.close()


@pytest.fixture
async def cast(stand: Stand) -> AsyncIterator[Cast]:
    async with Cast(stand.server) as cast:
        yield cast


@dataclass
class Scene:
    """One agent in one room, and the line between it and the proxy."""

    stand: Stand
    ann: Person
    bot: Bot
    room: str
    line: Recorder
    file: Path
    log: Path

    async def turn(self, words: str, *answers: Any, ends: str = "processed") -> None:
        """Ann says something, and the model has these answers to it."""
        self.stand.model.then(*answers)
        asked = (await self.ann.say(self.room, words, self.bot)).id
        await self.ann.settled(self.room, asked, self.bot, ends, within=20)

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[None]:
        """The agent at work; it must end well."""
        with self.log.open("a") as log:
            process = await asyncio.create_subprocess_exec(
                str(binary()), "run", str(self.file), stdout=log, stderr=log, env=dict(os.environ)
            )
        try:
            yield
            process.send_signal(signal.SIGTERM)
            code = await within(20, process.wait(), what="the agent ends")
            assert code == 0, f"the agent ended with {code}\n{self.log.read_text()}"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


@asynccontextmanager
async def scene(stand: Stand, cast: Cast, ann: Person, entry: str, model: str, stream: bool) -> AsyncIterator[Scene]:
    bot = await cast.bot(ann, "Harbour")
    room = await ann.open_room(bot)
    folder = stand.server.data / bot.id
    folder.mkdir()
    async with Recorder(stand.proxy.url).listening() as line:
        file = folder / "agent.toml"
        file.write_text(
            f"""
            url = "{stand.server.url}"
            key = "{bot.api_key}"
            instructions = "You are the harbour's clerk. Größe, 港口."
            [model]
            api = "{entry}"
            name = "{model}"
            base_url = "{line.url + ("" if entry == "anthropic" else "/v1")}"
            key = "{KEY}"
            profile = "litellm"
            stream = {str(stream).lower()}
            reasoning = {str(entry == "openai.responses").lower()}
            """
        )
        yield Scene(stand, ann, bot, room, line, file, folder / "agent.log")


THOUGHT: Part = {"type": "reasoning", "text": "Who is here?"}
THOUGHTS: dict[str, list[Part]] = {
    "openai.chat": [],
    "openai.responses": [THOUGHT | {"signature": "c2VjcmV0", "format": "openai.responses", "id": "rs_1"}],
    "anthropic": [THOUGHT | {"signature": "c2lnbmVk", "format": "anthropic"}],
}


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("model", APIS, ids=lambda api: f"to-{api}")
@pytest.mark.parametrize("entry", APIS, ids=lambda api: f"from-{api}")
async def test_a_turn_and_one_after_a_restart(
    stand: Stand, cast: Cast, ann: Person, entry: str, model: str, stream: bool
) -> None:
    async with scene(stand, cast, ann, entry, model, stream) as it:
        looks = does(
            *THOUGHTS[model],
            text("Einen Moment … 港"),
            call("call_1", "band_get_participants"),
            call("call_2", "band_lookup_peers", page=1),
            call("call_3", "no_such_tool", port="Łódź"),
            call("call_4", "band_add_participant", identifier="@nobody/at-all"),
        )
        answers = does(call("call_5", "band_send_message", content="Two of us 🚢", mentions=[f"@{ann.handle}"]))
        async with it.agent():
            await it.turn("Who is here?", looks, answers, says("Done."))
        stand.server.restart()
        async with it.agent():
            await it.turn("And now?", says("As before."))

        said = [content for sender, content in await ann.texts(it.room) if sender == it.bot.id]
        assert ["Two of us 🚢" in said[0], "As before." in said[1], len(said)] == [True, True, 2], said
        results = [json.loads(row.content) for row in await ann.messages(it.room, message_type="tool_result")]
        told = [(result["tool_call_id"], result["is_error"]) for result in results]
        assert [failed for _, failed in told] == [False, False, True, True, False], told

        asked = stand.model.asked()
        assert [request.api for request in asked] == [model] * 4
        assert [request.body.get("stream", False) for request in asked] == [stream] * 4
        sent = [request.body for request in it.line.requests]
        assert [judged("lint", request, entry)["findings"] for request in sent] == [[]] * 4
        pairs = zip(sent, [request.body for request in asked], strict=True)
        names = {ann.id: "{person}", ann.handle: "{handle}", it.bot.id: "{agent}", it.room: "{room}"}
        found = {line for ours, theirs in pairs for line in bends(ours, entry, theirs, model, names)}

    name = story(entry, model, stream)
    found = {f"{name}: {line}" for line in found}
    patterns = listed()
    shown[name] = {line for line, pattern in patterns.items() if any(pattern.fullmatch(one) for one in found)}
    unlisted = [one for one in sorted(found) if not any(pattern.fullmatch(one) for pattern in patterns.values())]
    assert not unlisted, "bends that are not in bends.txt:\n" + "\n".join(unlisted)


def test_nothing_is_listed_that_no_story_shows() -> None:
    assert shown, "no story has run"
    # A line of one story is judged once that story has run, and a line of several once all have.
    stories = {story(entry, model, stream) for entry in APIS for model in APIS for stream in (False, True)}
    whole = shown.keys() == stories
    judged_now = {line for line in listed() if whole or line.split(":", 1)[0] in shown}
    stale = judged_now - set().union(*shown.values())
    assert not stale, "listed, but no longer true:\n" + "\n".join(sorted(stale))


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("api", APIS)
async def test_a_model_that_is_busy_is_asked_again_and_a_refusal_is_told(
    stand: Stand, cast: Cast, ann: Person, api: str, stream: bool
) -> None:
    """Status and words of the model come through the proxy."""
    async with scene(stand, cast, ann, api, api, stream) as it, it.agent():
        await it.turn("Well?", refuses(429, "rate_limit_error", "not so fast"), says("Here I am."))
        assert len(stand.model.asked()) == 2
        await it.turn("And now?", refuses(400, "invalid_request_error", "I will not read that"), ends="failed")
        stand.model.asked()
        (error,) = await ann.messages(it.room, message_type="error")
        failure = error.metadata.model_dump()["failure"]
        assert (failure["code"], "I will not read that" in failure["detail"]) == ("400", True), failure


def judged(command: str, request: dict[str, Any], api: str) -> Any:
    """What `bandstand transcript` says of a request."""
    done = subprocess.run(
        [str(binary()), "transcript", command, "-", "--from", api, "--profile", "litellm", "--json"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def bends(ours: dict[str, Any], entry: str, theirs: dict[str, Any], model: str, names: dict[str, str]) -> Iterator[str]:
    """Where what the model got says something else than what our agent sent."""
    sent, got = (facts(judged("show", request, api), names) for request, api in ((ours, entry), (theirs, model)))
    words = {"-": "only sent", "+": "only arrived"}
    for line in difflib.ndiff(sent, got):
        if line[0] in words:
            yield f"{words[line[0]]}: {line[2:]}"
    if tool_names(ours) != tool_names(theirs):
        yield f"other tools: {tool_names(theirs)}"
    for finding in judged("lint", theirs, model)["findings"]:
        yield f"the linter finds {finding['code']}"


def facts(transcript: dict[str, Any], names: dict[str, str]) -> list[str]:
    """A conversation as lines, one for each part."""
    lines = [fact(message["role"], part) for message in transcript["messages"] for part in message["parts"]]
    for one, name in names.items():
        lines = [line.replace(one, name) for line in lines]
    return [UUID.sub("{id}", line) for line in lines]


def fact(role: str, part: dict[str, Any]) -> str:
    match part["type"]:
        case "text":
            return f"{role} says {part['text']!r}"
        case "tool_call":
            return f"call {part['id']} {part['name']} {json.dumps(part['arguments'], sort_keys=True)}"
        case "tool_result":
            told = "".join(content.get("text", content["type"]) for content in part["content"])
            return f"result {part['call_id']}{' failed' if part['is_error'] else ''} {told!r}"
        case _:
            return json.dumps(part, sort_keys=True)


def tool_names(request: dict[str, Any]) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in request.get("tools", [])]


def story(entry: str, model: str, stream: bool) -> str:
    return f"{entry} > {model}, {'streamed' if stream else 'plain'}"


def listed() -> dict[str, re.Pattern[str]]:
    """The lines of the list, one for each way of replying that a line is about; `*` stands for anything."""
    lines = [line for line in BENDS.read_text().splitlines() if line and not line.startswith(("#", "="))]
    each = [line for listed in lines for line in ways(listed)]
    return {line: re.compile(re.escape(line).replace(r"\*", ".*")) for line in each}


def ways(line: str) -> list[str]:
    where, bend = line.split(": ", 1)
    return [line] if ", " in where else [f"{where}, {way}: {bend}" for way in ("plain", "streamed")]


# What the stories that ran have shown of the list.
shown: dict[str, set[str]] = {}
