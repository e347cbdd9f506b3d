"""Activity: an agent says that it is at work, and at what."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import AgentActivityDetail

from harness.cast import Bot, Person
from harness.refusals import INVALID, refused


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


async def report(bot: Bot, room: str, working: bool, **more: Any) -> bool:
    reply = await bot.rest.agent_api_activity.report_agent_chat_activity(room, working=working, **more)
    return reply.data.working


async def test_work_is_reported_as_begun_going_on_and_ended(bot: Bot, room: str) -> None:
    assert [await report(bot, room, working) for working in (True, True, False, False)] == [True, True, False, False]


@pytest.mark.parametrize(
    "detail",
    [
        None,
        AgentActivityDetail(kind="reasoning"),
        AgentActivityDetail(kind="reasoning", name=None),
        AgentActivityDetail(kind="memory"),
        AgentActivityDetail(kind="permission"),
        AgentActivityDetail(kind="tool_call", name="get_weather"),
        AgentActivityDetail(kind="tool_call", name="kept to its first characters, and odd ones replaced " * 10),
    ],
)
async def test_work_may_be_described(bot: Bot, room: str, detail: AgentActivityDetail | None) -> None:
    assert await report(bot, room, True, activity=detail) is True


@pytest.mark.parametrize(
    ("detail", "field"),
    [
        (AgentActivityDetail(kind="tool_call"), "/activity/name"),
        (AgentActivityDetail(kind="tool_call", name=None), "/activity/name"),
        (AgentActivityDetail(kind="reasoning", name="get_weather"), "/activity/name"),
        (AgentActivityDetail(kind="daydreaming"), "/activity/kind"),
    ],
)
async def test_a_description_that_does_not_fit_is_refused_by_name(
    bot: Bot, room: str, detail: AgentActivityDetail, field: str
) -> None:
    refusal = await refused(bot.rest.agent_api_activity.report_agent_chat_activity, room, working=True, activity=detail)
    assert refusal == INVALID and refusal.names(field)


async def test_working_is_a_boolean(bot: Bot, room: str) -> None:
    refusal = await refused(bot.rest.agent_api_activity.report_agent_chat_activity, room, working="yes")
    assert refusal == INVALID and refusal.names("/working")
