"""A room's task board: numbers, work and its roll-up, lifecycles, and the chain of what replaced what."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import ChatEventRequest, Task

from harness.cast import UNKNOWN_ID, Bot, Cast, Person
from harness.refusals import INVALID, NOT_FOUND, Refusal, refused, unprocessable, untyped

STATUSES = ("pending", "in_progress", "blocked", "in_review", "failed", "completed")


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


async def create(bot: Bot, room: str, subject: str = "Paint the door", **fields: str) -> Task:
    return (await bot.rest.agent_api_chat_tasks.create_chat_task(room, subject=subject, **fields)).data


async def create_refused(bot: Bot, room: str, **fields: Any) -> Refusal:
    return await refused(bot.rest.agent_api_chat_tasks.create_chat_task, room, **fields)


async def get(bot: Bot, room: str, which: str | int) -> Task:
    return (await bot.rest.agent_api_chat_tasks.get_chat_task(room, str(which))).data


async def update(bot: Bot, room: str, which: str | int, **fields: str) -> Task:
    return (await bot.rest.agent_api_chat_tasks.update_chat_task(room, str(which), **fields)).data


async def update_refused(bot: Bot, room: str, which: str | int, **fields: Any) -> Refusal:
    return await refused(bot.rest.agent_api_chat_tasks.update_chat_task, room, str(which), **fields)


async def numbers(bot: Bot, room: str, **query: Any) -> list[int]:
    return [row.number for row in (await bot.rest.agent_api_chat_tasks.list_chat_tasks(room, **query)).data]


async def test_the_deployment_says_that_it_has_a_board(bot: Bot) -> None:
    assert (await bot.rest.agent_api_identity.get_agent_me()).data.feature_flags["ff_room_tasks"] is True


async def test_a_task_is_numbered_and_nobody_is_on_it(bot: Bot, room: str) -> None:
    task = await create(bot, room, "Paint the door", detail="In red")

    assert (task.number, task.chat_room_id, task.subject, task.detail) == (1, room, "Paint the door", "In red")
    assert (task.state, task.overall_status, task.assignments, task.superseded_by_id) == ("active", "pending", [], None)
    maker = task.created_by
    assert (maker.id, maker.type, maker.name, maker.handle) == (bot.id, "Agent", bot.name, bot.handle)
    assert task.inserted_at == task.updated_at
    assert await get(bot, room, 1) == await get(bot, room, task.id) == task
    assert (await create(bot, room, "Nothing more to say")).detail == ""


async def test_each_room_counts_for_itself(ann: Person, bot: Bot, room: str) -> None:
    other = await ann.open_room(bot)
    assert [(await create(bot, room)).number for _ in range(3)] == [1, 2, 3]
    first = await create(bot, other)
    assert first.number == 1
    # What is given up keeps its number.
    await update(bot, room, 3, state="cancelled")
    assert (await create(bot, room)).number == 4
    # And a number or id of another room names nothing here.
    assert await refused(bot.rest.agent_api_chat_tasks.get_chat_task, room, first.id) == NOT_FOUND
    assert await refused(bot.rest.agent_api_chat_tasks.get_chat_task, other, "2") == NOT_FOUND


async def test_what_names_no_task_is_not_found(bot: Bot, room: str) -> None:
    await create(bot, room)
    tasks = bot.rest.agent_api_chat_tasks
    for nothing in ("0", "2", "-1", "1x", "99999999999999999999", "not-an-id", UNKNOWN_ID):
        assert await refused(tasks.get_chat_task, room, nothing) == NOT_FOUND
        assert await refused(tasks.get_chat_task_history, room, nothing) == NOT_FOUND
        assert await update_refused(bot, room, nothing, comment="hello") == NOT_FOUND


@pytest.mark.parametrize("blank", ["", "  \n"])
async def test_a_task_says_what_is_to_be_done(bot: Bot, room: str, blank: str) -> None:
    refusal = await create_refused(bot, room, subject=blank)
    assert refusal == INVALID and refusal.names("/subject")
    assert await numbers(bot, room) == []


async def test_more_than_a_task_has_is_refused(bot: Bot, room: str) -> None:
    for body, pointer in (({"subject": "x", "colour": "red"}, "/colour"), ({"detail": "x"}, "/subject")):
        reply = await bot.raw.post(f"/api/v1/agent/chats/{room}/tasks", json=body)
        assert reply.status_code == 422 and pointer in reply.json()["error"]["details"]


async def test_the_board_shows_active_tasks_by_number(bot: Bot, room: str) -> None:
    for _ in range(5):
        await create(bot, room)
    await update(bot, room, 2, state="cancelled")
    await update(bot, room, 3, state="archived")
    await create(bot, room, supersedes_id="4")
    await update(bot, room, 1, comment="touched last")

    assert await numbers(bot, room) == await numbers(bot, room, state="active") == [1, 5, 6]
    assert await numbers(bot, room, state="cancelled") == [2]
    assert await numbers(bot, room, state="archived") == [3]
    assert await numbers(bot, room, state="superseded") == [4]
    assert await numbers(bot, room, state="all") == [1, 2, 3, 4, 5, 6]


async def test_a_cursor_walks_the_board(bot: Bot, room: str) -> None:
    for _ in range(5):
        await create(bot, room)
    pages, cursor = [], None
    while True:
        page = await bot.rest.agent_api_chat_tasks.list_chat_tasks(room, limit=2, cursor=cursor)
        pages.append([row.number for row in page.data])
        assert page.metadata.limit == 2 and page.metadata.has_more == (page.metadata.next_cursor is not None)
        cursor = page.metadata.next_cursor
        if cursor is None:
            break
    assert pages == [[1, 2], [3, 4], [5]]
    default = (await bot.rest.agent_api_chat_tasks.list_chat_tasks(room)).metadata
    most = (await bot.rest.agent_api_chat_tasks.list_chat_tasks(room, limit=101)).metadata
    assert (default.limit, default.has_more, default.next_cursor, most.limit) == (50, False, None, 100)


async def test_a_cursor_belongs_to_its_filter(bot: Bot, room: str) -> None:
    for _ in range(2):
        await create(bot, room)
    tasks = bot.rest.agent_api_chat_tasks
    cursor = (await tasks.list_chat_tasks(room, limit=1)).metadata.next_cursor
    refusal = await refused(tasks.list_chat_tasks, room, limit=1, cursor=cursor, state="all")
    assert refusal == unprocessable("cursor_filter_mismatch")


@pytest.mark.parametrize(("parameter", "value"), [("state", "lost"), ("limit", 0), ("cursor", "damaged")])
async def test_a_parameter_that_is_none_is_refused_by_name(bot: Bot, room: str, parameter: str, value: Any) -> None:
    refusal = await refused(bot.rest.agent_api_chat_tasks.list_chat_tasks, room, **{parameter: value})
    assert refusal == INVALID and refusal.names(f"/{parameter}")


async def test_an_include_that_is_none_is_refused_by_name(bot: Bot, room: str) -> None:
    await create(bot, room)
    for method, arguments in (
        (bot.rest.agent_api_chat_tasks.get_chat_task, (room, "1")),
        (bot.rest.agent_api_chat_tasks.get_chat_board, (room,)),
    ):
        refusal = await refused(method, *arguments, include="secrets")
        assert refusal == untyped(INVALID) and any(name.startswith("/include") for name in refusal.details)


async def test_the_first_status_joins_the_task(bot: Bot, room: str) -> None:
    made = await create(bot, room)

    task = await update(bot, room, 1, status="in_progress", active_form="Painting", linked_native_id="T-7")

    assert (task.id, task.overall_status) == (made.id, "in_progress")
    (part,) = task.assignments
    assert (part.assignee.id, part.assignee.handle, part.status) == (bot.id, bot.handle, "in_progress")
    assert (part.active_form, part.linked_native_id) == ("Painting", "T-7")
    assert task.updated_at == part.updated_at > made.updated_at
    # The rest may follow without it.
    task = await update(bot, room, 1, active_form="Drying")
    assert [(one.status, one.active_form) for one in task.assignments] == [("in_progress", "Drying")]
    # One assignment per participant.
    task = await update(bot, room, 1, status="completed")
    assert [one.status for one in task.assignments] == ["completed"]
    assert task.overall_status == "completed"


@pytest.mark.parametrize(
    ("statuses", "overall"),
    [
        (["pending", "pending", "pending"], "pending"),
        (["completed", "completed", "completed"], "completed"),
        (["completed", "completed", "pending"], "pending"),
        (["completed", "in_review", "pending"], "in_review"),
        (["completed", "in_review", "in_progress"], "in_progress"),
        (["in_review", "in_progress", "blocked"], "blocked"),
        (["in_progress", "blocked", "failed"], "failed"),
    ],
)
async def test_the_gravest_word_counts(
    ann: Person, bot: Bot, room: str, cast: Cast, statuses: list[str], overall: str
) -> None:
    others = await cast.bots(ann, 2)
    for other in others:
        await ann.add(room, other)
    await create(bot, room)

    for worker, status in zip((bot, *others), statuses, strict=True):
        task = await update(worker, room, 1, status=status)

    assert [part.status for part in task.assignments] == statuses
    assert task.overall_status == (await get(bot, room, 1)).overall_status == overall


@pytest.mark.parametrize("status", STATUSES)
async def test_one_worker_speaks_for_the_task(bot: Bot, room: str, status: str) -> None:
    await create(bot, room)
    assert (await update(bot, room, 1, status=status)).overall_status == status


async def test_what_is_to_be_done_can_be_edited_by_anyone_in_the_room(
    ann: Person, bot: Bot, room: str, cast: Cast
) -> None:
    other = await cast.bot(ann)
    await ann.add(room, other)
    await create(bot, room, detail="In red")
    task = await update(other, room, 1, subject="Paint the window")
    assert (task.subject, task.detail, task.assignments) == ("Paint the window", "In red", [])
    task = await update(other, room, 1, detail="")
    assert (task.subject, task.detail) == ("Paint the window", "")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"status": "done"}, "/status"),
        ({"state": "superseded"}, "/state"),
        ({"state": "lost"}, "/state"),
        ({"subject": " "}, "/subject"),
        ({"comment": ""}, "/comment"),
    ],
)
async def test_an_update_that_makes_no_sense_is_refused_by_name(
    bot: Bot, room: str, fields: dict[str, str], pointer: str
) -> None:
    before = await create(bot, room)
    refusal = await update_refused(bot, room, 1, **fields)
    assert refusal == INVALID and refusal.names(pointer)
    assert await get(bot, room, 1) == before


async def test_an_update_needs_at_least_one_field(bot: Bot, room: str) -> None:
    await create(bot, room)
    assert await update_refused(bot, room, 1) == INVALID


async def test_only_an_active_task_takes_work(bot: Bot, room: str) -> None:
    for number, state in ((1, "cancelled"), (2, "archived")):
        await create(bot, room)
        assert (await update(bot, room, number, state=state)).state == state
        for work in (
            {"status": "completed"},
            {"comment": "too late"},
            {"subject": "Too late"},
            {"detail": "too late"},
        ):
            assert await update_refused(bot, room, number, **work) == INVALID
    await create(bot, room)
    await create(bot, room, supersedes_id="3")
    assert await update_refused(bot, room, 3, status="completed") == INVALID


async def test_finish_and_tidy_away_works_in_one_call(bot: Bot, room: str) -> None:
    await create(bot, room)
    task = await update(bot, room, 1, status="completed", state="archived")
    assert (task.state, task.overall_status) == ("archived", "completed")


async def test_only_what_is_archived_comes_back(bot: Bot, room: str) -> None:
    for _ in range(3):
        await create(bot, room)
    await update(bot, room, 1, state="archived")
    await update(bot, room, 2, state="cancelled")
    await create(bot, room, supersedes_id="3")

    assert (await update(bot, room, 1, state="active")).state == "active"
    assert await update_refused(bot, room, 2, state="active") == INVALID
    assert await update_refused(bot, room, 3, state="active") == INVALID
    assert (await update(bot, room, 1, status="in_progress")).overall_status == "in_progress"


async def test_a_chain_of_replacements_can_be_followed(bot: Bot, room: str) -> None:
    first = await create(bot, room, "First plan")
    second = await create(bot, room, "Second plan", supersedes_id=first.id)
    third = await create(bot, room, "Third plan", supersedes_id=str(second.number))

    followed, at = [], first.id
    while at is not None:
        task = await get(bot, room, at)
        followed.append((task.number, task.state))
        at = task.superseded_by_id
    assert followed == [(1, "superseded"), (2, "superseded"), (3, "active")]
    assert third.superseded_by_id is None


async def test_only_an_active_task_is_replaced(ann: Person, bot: Bot, room: str) -> None:
    foreign = await create(bot, await ann.open_room(bot))
    for state in ("cancelled", "archived"):
        made = await create(bot, room)
        await update(bot, room, made.number, state=state)
        assert await create_refused(bot, room, subject="Too late", supersedes_id=made.id) == INVALID
    replaced = await create(bot, room)
    await create(bot, room, supersedes_id=replaced.id)
    assert await create_refused(bot, room, subject="Too late", supersedes_id=replaced.id) == INVALID
    before = await numbers(bot, room, state="all")
    for nothing in ("99", UNKNOWN_ID, "not-an-id", foreign.id):
        refusal = await create_refused(bot, room, subject="Of nothing", supersedes_id=nothing)
        assert (refusal.status, refusal.code) in {(422, "validation_error"), (404, "not_found")}
    assert await numbers(bot, room, state="all") == before
    # A refusal uses no number up.
    assert (await create(bot, room)).number == before[-1] + 1


async def test_people_see_how_the_work_stands(ann: Person, bot: Bot, room: str) -> None:
    for number, status in enumerate(STATUSES, start=1):
        await create(bot, room)
        await update(bot, room, number, status=status)
    await create(bot, room)
    await update(bot, room, 7, state="cancelled")

    (listed,) = (await ann.rest.human_api_chats.list_my_chats()).data
    detail = (await ann.rest.human_api_chats.get_my_chat_room(room)).data

    for row in (listed, detail):
        assert row.task_counts.model_dump() == dict.fromkeys(STATUSES, 1)
        assert row.work_status == "idle"
        assert [agent.id for agent in row.agents] == [bot.id]


async def test_people_see_who_works_and_who_is_stopped(ann: Person, bot: Bot, room: str) -> None:
    async def work_status() -> str:
        return (await ann.rest.human_api_chats.get_my_chat_room(room)).data.work_status

    await bot.rest.agent_api_activity.report_agent_chat_activity(room, working=True)
    assert await work_status() == "working"
    await bot.rest.agent_api_activity.report_agent_chat_activity(room, working=False)
    assert await work_status() == "idle"
    assert (await ann.raw.post(f"/api/v1/me/chats/{room}/agents/stop")).status_code == 200
    assert await work_status() == "stopped"
    assert (await ann.raw.post(f"/api/v1/me/chats/{room}/agents/play")).status_code == 200
    assert await work_status() == "idle"


async def test_the_board_is_the_description_of_its_room(ann: Person, bot: Bot, room: str) -> None:
    await bot.rest.agent_api_chat_tasks.put_chat_board(room, goal_title="Ship it", goal_summary="By Friday")
    detail = (await ann.rest.human_api_chats.get_my_chat_room(room)).data
    assert "description" in detail.model_fields_set


async def test_an_attention_event_names_a_task_of_its_room(ann: Person, bot: Bot, room: str) -> None:
    task = await create(bot, room)
    foreign = await create(bot, await ann.open_room(bot))

    def attention(which: str) -> ChatEventRequest:
        metadata = {"kind": "question", "blocking": True, "task_id": which}
        return ChatEventRequest(content="Which red?", message_type="attention", metadata=metadata)

    post = bot.rest.agent_api_events.create_agent_chat_event
    made = (await post(room, event=attention(task.id))).data
    assert (made.success, made.message_type) == (True, "attention")
    for nothing in (foreign.id, UNKNOWN_ID):
        refusal = await refused(post, room, event=attention(nothing))
        assert refusal == INVALID and refusal.names("/event/metadata/task_id")
