"""The trail of a task and of a room's goal: one row for each thing that a save did, in order, never changed."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import Board, TaskEvent

from harness.cast import Bot, Cast, Person
from harness.refusals import INVALID, NOT_FOUND, refused, unprocessable

SHOWN = 100


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


async def history(bot: Bot, room: str, which: str = "1") -> list[TaskEvent]:
    return (await bot.rest.agent_api_chat_tasks.get_chat_task_history(room, which)).data


def told(events: list[TaskEvent]) -> list[tuple[str, dict[str, Any]]]:
    return [(event.event, event.payload) for event in events]


async def test_every_save_leaves_a_row(ann: Person, bot: Bot, room: str, cast: Cast) -> None:
    other = await cast.bot(ann)
    await ann.add(room, other)
    mine, its = bot.rest.agent_api_chat_tasks, other.rest.agent_api_chat_tasks
    await mine.create_chat_task(room, subject="Paint the door", detail="In red")
    await its.update_chat_task(room, "1", status="in_progress")
    await mine.update_chat_task(room, "1", subject="Paint the window")
    await its.update_chat_task(room, "1", comment="Which one?")
    await its.update_chat_task(room, "1", status="completed", linked_native_id="T-7")
    await mine.update_chat_task(room, "1", state="archived")
    await mine.update_chat_task(room, "1", state="active")
    await mine.update_chat_task(room, "1", state="cancelled")

    events = await history(bot, room)

    (created, initial), *later = told(events)
    assert created == "created"
    assert (initial["subject"], initial["detail"]) == ("Paint the door", "In red")
    assert later == [
        ("status_changed", {"status": {"from": None, "to": "in_progress"}}),
        ("edited", {"subject": {"from": "Paint the door", "to": "Paint the window"}}),
        ("commented", {"text": "Which one?"}),
        ("status_changed", {"status": {"from": "in_progress", "to": "completed"}, "linked_native_id": "T-7"}),
        ("archived", {"state": {"from": "active", "to": "archived"}}),
        ("unarchived", {"state": {"from": "archived", "to": "active"}}),
        ("cancelled", {"state": {"from": "active", "to": "cancelled"}}),
    ]
    assert [event.actor.id for event in events] == [
        bot.id,
        other.id,
        bot.id,
        other.id,
        other.id,
        bot.id,
        bot.id,
        bot.id,
    ]
    assert {(event.actor.type, event.actor.name) for event in events} == {("Agent", bot.name), ("Agent", other.name)}
    assert [event.at for event in events] == sorted(event.at for event in events)


async def test_a_replaced_task_says_by_which(bot: Bot, room: str) -> None:
    tasks = bot.rest.agent_api_chat_tasks
    await tasks.create_chat_task(room, subject="First plan")
    second = (await tasks.create_chat_task(room, subject="Second plan", supersedes_id="1")).data
    *_, last = told(await history(bot, room))
    assert last == ("superseded", {"state": {"from": "active", "to": "superseded"}, "superseded_by_id": second.id})


async def test_a_save_that_does_several_things_tells_each(bot: Bot, room: str) -> None:
    tasks = bot.rest.agent_api_chat_tasks
    await tasks.create_chat_task(room, subject="Paint the door")
    await tasks.update_chat_task(
        room, "1", status="completed", comment="Done", subject="Paint the red door", state="archived"
    )
    _, *later = told(await history(bot, room))
    assert {event for event, _ in later} == {"status_changed", "commented", "edited", "archived"}
    assert later[-1][0] == "archived", "work comes before tidying away"


async def test_equal_saves_are_not_merged(bot: Bot, room: str) -> None:
    tasks = bot.rest.agent_api_chat_tasks
    await tasks.create_chat_task(room, subject="Paint the door")
    for _ in range(3):
        await tasks.update_chat_task(room, "1", comment="Still drying")
    assert [event for event, _ in told(await history(bot, room))] == ["created"] + ["commented"] * 3


async def test_a_rename_does_not_change_what_was_written(ann: Person, bot: Bot, room: str) -> None:
    tasks = bot.rest.agent_api_chat_tasks
    await tasks.create_chat_task(room, subject="Paint the door")
    before = await history(bot, room)
    await tasks.update_chat_task(room, "1", subject="Paint the window")
    assert (await history(bot, room))[:1] == before


async def test_a_long_history_is_paged_and_shown_by_its_end(bot: Bot, room: str) -> None:
    tasks = bot.rest.agent_api_chat_tasks
    await tasks.create_chat_task(room, subject="Paint the door")
    short = (await tasks.get_chat_task(room, "1", include="history")).data
    assert (told(short.history), short.history_truncated) == (told(await history(bot, room)), False)
    for number in range(SHOWN + 2):
        await tasks.update_chat_task(room, "1", comment=f"number {number}")

    walked, cursor = [], None
    while True:
        page = await tasks.get_chat_task_history(room, "1", limit=40, cursor=cursor)
        assert page.metadata.limit == 40 and page.metadata.has_more == (page.metadata.next_cursor is not None)
        walked += page.data
        cursor = page.metadata.next_cursor
        if cursor is None:
            break

    texts = [payload.get("text") for _, payload in told(walked)]
    assert texts == [None, *(f"number {number}" for number in range(SHOWN + 2))]
    shown = (await tasks.get_chat_task(room, "1", include="history")).data
    assert (shown.history, shown.history_truncated) == (walked[-SHOWN:], True)
    plain = (await tasks.get_chat_task(room, "1")).data
    assert not plain.model_fields_set & {"history", "history_truncated"}
    default = await tasks.get_chat_task_history(room, "1")
    assert (len(default.data), default.metadata.limit, default.metadata.has_more) == (50, 50, True)
    assert len((await tasks.get_chat_task_history(room, "1", limit=101)).data) == 100


@pytest.mark.parametrize(("parameter", "value"), [("limit", 0), ("cursor", "damaged")])
async def test_a_parameter_that_is_none_is_refused_by_name(bot: Bot, room: str, parameter: str, value: Any) -> None:
    await bot.rest.agent_api_chat_tasks.create_chat_task(room, subject="Paint the door")
    refusal = await refused(bot.rest.agent_api_chat_tasks.get_chat_task_history, room, "1", **{parameter: value})
    assert refusal == INVALID and refusal.names(f"/{parameter}")


async def test_a_cursor_belongs_to_its_task(bot: Bot, room: str) -> None:
    tasks = bot.rest.agent_api_chat_tasks
    for number in ("1", "2"):
        await tasks.create_chat_task(room, subject="Paint the door")
        await tasks.update_chat_task(room, number, comment="Red?")
    cursor = (await tasks.get_chat_task_history(room, "1", limit=1)).metadata.next_cursor
    refusal = await refused(tasks.get_chat_task_history, room, "2", limit=1, cursor=cursor)
    assert refusal in (unprocessable("cursor_filter_mismatch"), INVALID)


async def goal(bot: Bot, room: str, **fields: str) -> Board:
    return (await bot.rest.agent_api_chat_tasks.put_chat_board(room, **fields)).data


async def test_a_board_without_a_goal_is_empty(bot: Bot, room: str) -> None:
    board = (await bot.rest.agent_api_chat_tasks.get_chat_board(room)).data
    assert board.chat_room_id == room
    assert (board.goal_title, board.goal_summary, board.created_by, board.updated_by) == (None,) * 4
    assert (board.inserted_at, board.updated_at) == (None, None)
    assert not board.model_fields_set & {"history", "history_truncated"}
    empty = (await bot.rest.agent_api_chat_tasks.get_chat_board(room, include="history")).data
    assert (empty.history, empty.history_truncated) == ([], False)


async def test_only_what_is_sent_of_a_goal_changes(ann: Person, bot: Bot, room: str, cast: Cast) -> None:
    other = await cast.bot(ann)
    await ann.add(room, other)

    first = await goal(bot, room, goal_title="Ship it")
    assert (first.goal_title, first.goal_summary) == ("Ship it", None)
    assert (first.created_by.id, first.updated_by.id) == (bot.id, bot.id)
    assert first.inserted_at == first.updated_at

    second = await goal(other, room, goal_summary="By Friday")
    assert (second.goal_title, second.goal_summary) == ("Ship it", "By Friday")
    assert (second.created_by.id, second.updated_by.id, second.inserted_at) == (bot.id, other.id, first.inserted_at)
    assert second.updated_at > first.updated_at
    assert (await bot.rest.agent_api_chat_tasks.get_chat_board(room)).data == second


async def test_a_goal_keeps_its_trail(ann: Person, bot: Bot, room: str, cast: Cast) -> None:
    other = await cast.bot(ann)
    await ann.add(room, other)
    await goal(bot, room, goal_title="Ship it")
    await goal(other, room, goal_title="Ship it well", goal_summary="By Friday")

    board = (await bot.rest.agent_api_chat_tasks.get_chat_board(room, include="history")).data

    assert [(row.event, row.payload, row.actor.id) for row in board.history] == [
        ("goal_set", {"goal_title": {"from": None, "to": "Ship it"}}, bot.id),
        (
            "goal_edited",
            {
                "goal_title": {"from": "Ship it", "to": "Ship it well"},
                "goal_summary": {"from": None, "to": "By Friday"},
            },
            other.id,
        ),
    ]
    assert board.history_truncated is False


async def test_a_goal_needs_a_field_and_no_others(bot: Bot, room: str) -> None:
    assert await refused(bot.rest.agent_api_chat_tasks.put_chat_board, room) == INVALID
    reply = await bot.raw.put(f"/api/v1/agent/chats/{room}/board", json={"goal_title": "x", "colour": "red"})
    assert reply.status_code == 422 and "/colour" in reply.json()["error"]["details"]


async def test_who_leaves_the_room_leaves_the_board(ann: Person, bot: Bot, room: str) -> None:
    tasks = bot.rest.agent_api_chat_tasks
    await tasks.create_chat_task(room, subject="Paint the door")
    await ann.remove(room, bot)
    for method, arguments in (
        (tasks.list_chat_tasks, (room,)),
        (tasks.get_chat_task, (room, "1")),
        (tasks.get_chat_task_history, (room, "1")),
        (tasks.get_chat_board, (room,)),
    ):
        assert await refused(method, *arguments) == NOT_FOUND
    assert await refused(tasks.create_chat_task, room, subject="Too late") == NOT_FOUND
    assert await refused(tasks.put_chat_board, room, goal_title="Too late") == NOT_FOUND
