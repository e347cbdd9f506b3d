"""Stopping agents, letting them go on, and interrupting them: a person's client has no methods for that."""

from __future__ import annotations

from typing import Any

from harness.cast import Bot, Person


async def stop(who: Person, room: str) -> None:
    reply = await who.raw.post(f"/api/v1/me/chats/{room}/agents/stop")
    assert (reply.status_code, reply.json()) == (200, {"data": {"stopped": True}}), reply.text


async def play(who: Person, room: str) -> None:
    reply = await who.raw.post(f"/api/v1/me/chats/{room}/agents/play")
    assert (reply.status_code, reply.json()) == (200, {"data": {"stopped": False}}), reply.text


async def executions(who: Person, bot: Bot) -> list[dict[str, Any]]:
    reply = await who.raw.get(f"/api/v1/me/agents/{bot.id}/executions")
    assert reply.status_code == 200, reply.text
    return reply.json()["data"]


async def interrupt(who: Person, bot: Bot, execution: str) -> None:
    reply = await who.raw.post(f"/api/v1/me/agents/{bot.id}/executions/{execution}/interrupt")
    assert (reply.status_code, reply.json()) == (200, {"data": {"id": execution}}), reply.text
