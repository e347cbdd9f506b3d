"""`band-mcp` over stdio, with an agent's key, a person's, and both: what it offers, and each tool at work."""

from __future__ import annotations

from pathlib import Path

from harness.cast import Bot, Cast, Person, token
from harness.mcp_program import band_mcp
from harness.mcp_stories import (
    AGENT,
    AGENT_CHAT,
    ALL_GROUPS,
    HEALTH,
    HUMAN,
    HUMAN_CHAT,
    each_tool_of_a_person,
    each_tool_of_an_agent,
)
from harness.server import Server


async def test_what_an_agent_is_offered(server: Server, bot: Bot, tmp_path: Path) -> None:
    async with band_mcp(server, tmp_path, agent=bot) as call:
        assert (await call.offered()).keys() == AGENT_CHAT.keys() | HEALTH
        assert await call("health_check") == f"OK | agent | {server.url}"

    async with band_mcp(server, tmp_path, *ALL_GROUPS, agent=bot) as call:
        offered = await call.offered()
    assert offered.keys() == AGENT.keys() | HEALTH and len(AGENT) == 25
    for name, in_a_room in AGENT.items():
        assert ("chat_id" in offered[name].get("required", [])) == in_a_room, name


async def test_what_a_person_is_offered(server: Server, ann: Person, tmp_path: Path) -> None:
    async with band_mcp(server, tmp_path, "--scope", "human", person=ann) as call:
        assert (await call.offered()).keys() == HUMAN_CHAT | HEALTH
        assert await call("health_check") == f"OK | human | {server.url}"

    async with band_mcp(server, tmp_path, "--scope", "human", *ALL_GROUPS, person=ann) as call:
        offered = await call.offered()
    assert offered.keys() == HUMAN | HEALTH and len(HUMAN) == 28


async def test_both_keys_at_once(server: Server, ann: Person, bot: Bot, tmp_path: Path) -> None:
    async with band_mcp(server, tmp_path, "--scope", "agent,human", *ALL_GROUPS, agent=bot, person=ann) as call:
        assert (await call.offered()).keys() == AGENT.keys() | HUMAN | HEALTH
        assert await call("health_check") == f"OK | human,agent | {server.url}"
        room = (await call("band_create_my_chat_room"))["data"]["id"]
        await call("band_add_my_chat_participant", chat_id=room, participant_id=bot.id)
        await call("band_send_message", chat_id=room, content="Here I am", mentions=[ann.handle])
    assert await ann.texts(room) == [(bot.id, f"{token(ann)} Here I am")]


async def test_a_wrong_key_shows_in_the_health_check(server: Server, bot: Bot, tmp_path: Path) -> None:
    stolen = Bot(bot.id, bot.name, bot.handle, "band_a_" + "0" * 43, bot.rest, bot.raw)
    async with band_mcp(server, tmp_path, agent=stolen) as call:
        health = await call("health_check")
    assert health.startswith("Failed | agent | ") and "401" in health


async def test_each_tool_of_an_agent(server: Server, ann: Person, bot: Bot, cast: Cast, tmp_path: Path) -> None:
    async with band_mcp(server, tmp_path, *ALL_GROUPS, agent=bot) as call:
        await each_tool_of_an_agent(call, cast, ann, bot)
        assert call.made == AGENT.keys() | HEALTH


async def test_each_tool_of_a_person(server: Server, ann: Person, bot: Bot, cast: Cast, tmp_path: Path) -> None:
    async with band_mcp(server, tmp_path, "--scope", "human", *ALL_GROUPS, person=ann) as call:
        await each_tool_of_a_person(call, cast, ann, bot)
        assert call.made == HUMAN | HEALTH


async def test_a_room_may_be_pinned(server: Server, ann: Person, bot: Bot, tmp_path: Path) -> None:
    room = await bot.open_room(ann)
    async with band_mcp(server, tmp_path, *ALL_GROUPS, "--room-id", room, agent=bot) as call:
        offered = await call.offered()
        assert not any("chat_id" in schema["properties"] for schema in offered.values())
        await call("band_send_message", content="Good morning", mentions=[ann.handle])
        assert (await call("band_create_task", subject="Paint the door"))["chat_room_id"] == room
    assert len(await ann.texts(room)) == 1
