"""`room_tasks`: the task or board as REST shows it, pushed to everyone in the room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from harness.cast import UNKNOWN_ID, Bot, Cast, Person
from harness.frames import Socket, open_socket
from harness.server import Server


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


@pytest.fixture
async def watchers(server: Server, ann: Person, bot: Bot, room: str) -> AsyncIterator[tuple[Socket, Socket]]:
    """The agent's socket and Ann's, both at the board."""
    async with (
        open_socket(server, bot.api_key, agent_id=bot.id) as agent,
        open_socket(server, ann.api_key) as person,
    ):
        for socket in (agent, person):
            await socket.joins(f"room_tasks:{room}")
        yield agent, person


async def shown(bot: Bot, room: str, what: str) -> dict[str, Any]:
    """What REST shows at this moment."""
    return (await bot.raw.get(f"/api/v1/agent/chats/{room}/{what}")).json()["data"]


async def test_a_task_is_pushed_as_rest_shows_it(bot: Bot, room: str, watchers: tuple[Socket, Socket]) -> None:
    tasks, topic = bot.rest.agent_api_chat_tasks, f"room_tasks:{room}"
    await tasks.create_chat_task(room, subject="Paint the door")
    created = await shown(bot, room, "tasks/1")
    for socket in watchers:
        assert await socket.pushed(topic, "task_created") == created

    await tasks.update_chat_task(room, "1", status="in_progress", active_form="Painting")
    updated = await shown(bot, room, "tasks/1")
    for socket in watchers:
        assert await socket.pushed(topic, "task_updated") == updated
    assert updated["overall_status"] == "in_progress"


async def test_a_replacement_is_two_changes(bot: Bot, room: str, watchers: tuple[Socket, Socket]) -> None:
    tasks, topic = bot.rest.agent_api_chat_tasks, f"room_tasks:{room}"
    await tasks.create_chat_task(room, subject="First plan")
    second = (await tasks.create_chat_task(room, subject="Second plan", supersedes_id="1")).data
    for socket in watchers:
        await socket.pushed(topic, "task_created", lambda task: task["number"] == 2)
        replaced = await socket.pushed(topic, "task_updated", lambda task: task["number"] == 1)
        assert (replaced["state"], replaced["superseded_by_id"]) == ("superseded", second.id)


async def test_a_goal_is_pushed_as_rest_shows_it(bot: Bot, room: str, watchers: tuple[Socket, Socket]) -> None:
    await bot.rest.agent_api_chat_tasks.put_chat_board(room, goal_title="A red house")
    board = await shown(bot, room, "board")
    for socket in watchers:
        assert await socket.pushed(f"room_tasks:{room}", "board_updated") == board


async def test_what_is_refused_is_not_pushed(bot: Bot, room: str, watchers: tuple[Socket, Socket]) -> None:
    reply = await bot.raw.post(f"/api/v1/agent/chats/{room}/tasks", json={"subject": ""})
    assert reply.status_code == 422
    for socket in watchers:
        await socket.settle()
        assert socket.kept(f"room_tasks:{room}", "task_created") == []


async def test_the_board_is_for_those_in_the_room(server: Server, ann: Person, bot: Bot, room: str, cast: Cast) -> None:
    outsider, stranger = await cast.bot(ann), await cast.person("stranger")
    for key, query in ((outsider.api_key, {"agent_id": outsider.id}), (stranger.api_key, {})):
        async with open_socket(server, key, **query) as socket:
            for topic in (f"room_tasks:{room}", f"room_tasks:{UNKNOWN_ID}", "room_tasks:nonsense"):
                reply = (await socket.join(topic)).payload
                assert reply == {"status": "error", "response": {"reason": "unauthorized"}}
