"""Our own MCP server, over stdio and over HTTP, with an agent's key and a person's: what it offers, each tool at work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, token
from harness.mcp_program import Tools, own_http, own_stdio
from harness.mcp_stories import AGENT, HEALTH, HUMAN, each_tool_of_a_person, each_tool_of_an_agent
from harness.server import Server

GROUPS = "contacts,memory,tasks,files"
FILES = {"band_list_room_files", "band_read_room_file", "band_send_room_file"}
LIFE = {"band_wait_for_message", "band_finish_message"}

Opener = Callable[..., AbstractAsyncContextManager[Tools]]


def committed() -> list[tuple[str, str, str, bool]]:
    """Scope, group, name, and whether the tool takes a room."""
    lines = (Path(__file__).parent / "tools.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line and not line.startswith("#")]
    return [(row[0], row[1], row[2], row[3:] == ["chat_id"]) for row in rows]


def expected(scope: str, groups: str) -> dict[str, bool]:
    chosen = {"chat", *groups.split(",")}
    return {name: room for of, group, name, room in committed() if of in (scope, "both") and group in chosen}


@pytest.fixture(params=["stdio", "http"])
def opened(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Opener:
    """Opens a session in each of the two ways."""

    @asynccontextmanager
    async def over_stdio(scope: str, who: Bot | Person, groups: str = "") -> AsyncIterator[Tools]:
        keys = {"agent": who} if scope == "agent" else {"person": who}
        flags = ["--scope", scope, *(["--tools", groups] if groups else [])]
        async with own_stdio(server, tmp_path, *flags, **keys) as call:
            yield call

    @asynccontextmanager
    async def over_http(scope: str, who: Bot | Person, groups: str = "") -> AsyncIterator[Tools]:
        async with own_http(server, who.api_key, f"?tools={groups}" if groups else "") as call:
            yield call

    return over_stdio if request.param == "stdio" else over_http


@pytest.mark.parametrize("groups", ["", "tasks", GROUPS])
async def test_what_is_offered_is_what_the_list_says(opened: Opener, ann: Person, bot: Bot, groups: str) -> None:
    for scope, who in (("agent", bot), ("human", ann)):
        async with opened(scope, who, groups) as call:
            offered = await call.offered()
        takes_room = {name: "chat_id" in schema.get("required", []) for name, schema in offered.items()}
        assert takes_room == expected(scope, groups)


async def test_each_tool_of_an_agent(opened: Opener, server: Server, ann: Person, bot: Bot, cast: Cast) -> None:
    async with opened("agent", bot, GROUPS) as call:
        await each_tool_of_an_agent(call, cast, ann, bot)
        await files_of_an_agent(call, ann, bot)
        await life_of_an_agent(call, ann, bot)
        assert call.made == AGENT.keys() | HEALTH | FILES | LIFE | {"band_why"}
        assert call.made == expected("agent", GROUPS).keys(), "each tool is called"


async def files_of_an_agent(call: Tools, ann: Person, bot: Bot) -> None:
    room = await bot.open_room(ann)
    sent = await call("band_send_room_file", chat_id=room, content="1,2", filename="a.csv", mentions=[ann.id])
    listed = await call("band_list_room_files", chat_id=room)
    assert [one["id"] for one in listed["data"]] == [sent["attachment"]["id"]]
    read = await call("band_read_room_file", chat_id=room, file_id=sent["attachment"]["id"])
    assert (read["name"], read["text"]) == ("a.csv", "1,2")


async def life_of_an_agent(call: Tools, ann: Person, bot: Bot) -> None:
    room = await bot.open_room(ann)
    asked = await ann.say(room, "Are you there?", bot)
    given = await call("band_wait_for_message", timeout_s=20)
    assert (given["message"]["id"], given["message"]["chat_id"], given["message"]["attempt"]) == (asked.id, room, 1)
    await ann.settled(room, asked.id, bot, "processing")
    done = await call("band_finish_message", outcome="processed")
    assert done == {"message_id": asked.id, "chat_id": room, "status": "processed"}
    await ann.settled(room, asked.id, bot, "processed")
    sent = await call("band_send_message", chat_id=room, content="Yes", mentions=[ann.handle])
    ledger = await call("band_why", chat_id=room, message_id=sent["id"])
    assert [row["participant"]["id"] for row in ledger["data"]] == [ann.id] or ledger["data"] == []
    own = await call("band_why", chat_id=room, message_id=asked.id)
    assert "processed" in str(own["data"])
    assert "404" in await call.fails("band_why", chat_id=room, message_id=UNKNOWN_ID)


async def test_each_tool_of_a_person(opened: Opener, ann: Person, bot: Bot, cast: Cast) -> None:
    async with opened("human", ann, GROUPS) as call:
        await each_tool_of_a_person(call, cast, ann, bot)
        room = await ann.open_room(bot)
        asked = await ann.say(room, "Are you there?", bot)
        ledger = await call("band_why", chat_id=room, message_id=asked.id, participant=bot.id)
        assert bot.id in str(ledger["data"])
        assert call.made == HUMAN | HEALTH | {"band_why"}
        assert call.made == expected("human", GROUPS).keys(), "each tool is called"


async def test_both_keys_at_once(server: Server, ann: Person, bot: Bot, tmp_path: Path) -> None:
    async with own_stdio(server, tmp_path, "--scope", "agent,human", agent=bot, person=ann) as call:
        assert (await call.offered()).keys() == expected("agent", "").keys() | expected("human", "").keys()
        assert await call("health_check") == f"OK | human,agent | {server.url}"
        room = (await call("band_create_my_chat_room"))["data"]["id"]
        await call("band_add_my_chat_participant", chat_id=room, participant_id=bot.id)
        await call("band_send_message", chat_id=room, content="Here I am", mentions=[ann.handle])
    assert await ann.texts(room) == [(bot.id, f"{token(ann)} Here I am")]


async def test_a_room_may_be_pinned(server: Server, ann: Person, bot: Bot, tmp_path: Path) -> None:
    room, other = await bot.open_room(ann), await bot.open_room(ann)
    stdio = own_stdio(server, tmp_path, "--tools", GROUPS, "--room-id", room, agent=bot)
    http = own_http(server, bot.api_key, f"?tools={GROUPS}&room={room}")
    for session in (stdio, http):
        async with session as call:
            offered = await call.offered()
            assert not any("chat_id" in schema["properties"] for schema in offered.values())
            # Whatever a client says, the pinned room wins.
            await call("band_send_message", chat_id=other, content="Good morning", mentions=[ann.handle])
            assert (await call("band_create_task", subject="Paint the door"))["chat_room_id"] == room
    assert (len(await ann.texts(room)), len(await ann.texts(other))) == (2, 0)


async def test_a_wrong_key(server: Server, bot: Bot, tmp_path: Path) -> None:
    stolen = Bot(bot.id, bot.name, bot.handle, "band_a_" + "0" * 43, bot.rest, bot.raw)
    async with own_stdio(server, tmp_path, agent=stolen) as call:
        health = await call("health_check")
        assert health.startswith("Failed | agent | ") and "401" in health
        refusal = await call.fails("band_create_chatroom")
        assert "401" in refusal and "headers" not in refusal and "request_id" not in refusal


async def test_a_bearer_token_is_a_key_as_well(server: Server, bot: Bot) -> None:
    async with own_http(server, bot.api_key, bearer=True) as call:
        assert await call("health_check") == f"OK | agent | {server.url}"
