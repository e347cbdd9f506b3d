"""An agent that has nothing but MCP lives in a room with one that has the SDK, and loses nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from harness.cast import Bot, Cast, Person, token
from harness.mcp_program import Tools, own_http, own_stdio
from harness.scripted import Scripted, agent_of, replying, running
from harness.server import Server
from harness.waiting import eventually, within

LAST = "That was all"


async def answers(call: Tools, given: list[str]) -> None:
    """What a model would do with the tools: wait, answer, wait again. It ends with the last question."""
    handled = None
    while True:
        # Without an answer it simply asks again, as models do.
        result = await call.session.call_tool("band_wait_for_message", {"timeout_s": 5, "handled": handled})
        if result.isError:
            continue
        message = call.read(result.content[0].text)["message"]
        if message is None:
            continue
        handled = message["id"]
        given.append(message["content"])
        sent = await call.session.call_tool(
            "band_send_message",
            {"chat_id": message["chat_id"], "content": f"Heard {len(given)}", "mentions": [message["sender_id"]]},
        )
        assert not sent.isError, sent.content[0].text
        if message["content"].endswith(LAST):
            await call("band_finish_message", outcome="processed", message_id=message["id"])
            return


@pytest.mark.timeout(120)
async def test_an_mcp_only_agent_lives_through_a_restart(own_server: Server, tmp_path: Path) -> None:
    async with Cast(own_server) as cast:
        ann = await cast.person()
        editor, sdk = await cast.bot(ann, "Editor"), await cast.bot(ann, "Sdk")
        room = await ann.open_room(editor, sdk)
        given: list[str] = []
        sdk_agent = agent_of(own_server, sdk, Scripted(replying("From the SDK")))
        async with running(sdk_agent), own_stdio(own_server, tmp_path, agent=editor) as call:
            living = asyncio.create_task(answers(call, given))
            asked = [await ann.say(room, f"Question {number}", editor, sdk) for number in range(3)]
            await ann.settled(room, asked[0].id, editor, "processed")
            # band-sdk 6.0.1 may stay behind when the server goes away in the middle of its own work.
            for message in asked:
                await ann.settled(room, message.id, sdk, "processed")
            await asyncio.to_thread(own_server.restart)
            asked += [await ann.say(room, f"Question {number}", editor, sdk) for number in range(3, 6)]
            await sdk.say(room, "From one agent to the other", editor)
            last = await ann.say(room, LAST, editor)
            await within(40, living, what="the agent has heard the last question")
            for message in (*asked, last):
                await ann.settled(room, message.id, editor, "processed", within=20)

            async def all_answered() -> bool:
                return [one for one, _ in await ann.texts(room)].count(sdk.id) > len(asked)

            await eventually(all_answered, what="the SDK's agent has answered as well", within=30)
        heard = [text.replace(f"@{editor.handle} ", "").replace(f"@{sdk.handle} ", "") for text in given]
        wanted = [*(f"Question {number}" for number in range(6)), "From one agent to the other", LAST]
        # In order, each at least once; one that a restart cut off in mid-work may come twice.
        assert list(dict.fromkeys(heard)) == wanted
        assert len([1 for sender, _ in await ann.texts(room) if sender == editor.id]) >= len(wanted)


async def test_a_session_that_ends_loses_nothing(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    asked = await ann.say(room, "Are you there?", bot)
    async with own_http(server, bot.api_key) as call:
        first = (await call("band_wait_for_message", timeout_s=20))["message"]
    async with own_http(server, bot.api_key) as call:
        again = (await call("band_wait_for_message", timeout_s=20))["message"]
        assert (first["id"], again["id"], again["attempt"]) == (asked.id, asked.id, 2)
        await call("band_finish_message", outcome="declined", reason="Not for me")
    delivery = await ann.settled(room, asked.id, bot, "processed")
    assert delivery["status"] == "processed"


async def test_a_failure_is_seen_by_people(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    asked = await ann.say(room, "Fly!", bot)
    async with own_http(server, bot.api_key) as call:
        await call("band_wait_for_message", timeout_s=20)
        assert "reason" in await call.fails("band_finish_message", outcome="failed")
        await call("band_finish_message", outcome="failed", reason="I have no wings")
        assert "Call band_wait_for_message first" in await call.fails("band_finish_message", outcome="processed")
    await ann.settled(room, asked.id, bot, "failed")


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_waiting_tells_how_it_goes_on(server: Server, bot: Bot, tmp_path: Path, transport: str) -> None:
    told: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        assert total == 6 and message
        told.append(done)

    session = own_stdio(server, tmp_path, agent=bot) if transport == "stdio" else own_http(server, bot.api_key)
    async with session as call:
        result = await call.session.call_tool("band_wait_for_message", {"timeout_s": 6}, progress_callback=progress)
        assert call.read(result.content[0].text)["message"] is None
    assert told, "a client that asks for it is told that the wait goes on"
