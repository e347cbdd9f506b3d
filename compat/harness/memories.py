"""Remembering something, with the parts that a story does not care about filled in."""

from __future__ import annotations

from typing import Any

from band_rest.types import AgentMemory, AgentMemoryCreateRequest

from harness.cast import Bot, Identity


def memory(content: str = "Ann likes tea", **fields: Any) -> AgentMemoryCreateRequest:
    given = {"system": "long_term", "type": "semantic", "segment": "user", "thought": "It came up", **fields}
    return AgentMemoryCreateRequest(content=content, **given)


async def remember(
    bot: Bot, content: str = "Ann likes tea", about: Identity | None = None, **fields: Any
) -> AgentMemory:
    """A memory of an agent's, about somebody when somebody is given."""
    if about is not None:
        fields["subject_id"] = about.id
    return (await bot.rest.agent_api_memories.create_agent_memory(memory=memory(content, **fields))).data
