"""What 0.0.51 tells of a task beside its status: when work began and when it was done."""

from __future__ import annotations

from band_rest.types import Task

from harness.cast import Bot, Person


async def test_work_begins_once_and_is_done_as_long_as_all_say_so(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    tasks = bot.rest.agent_api_chat_tasks

    async def update(**fields: str) -> Task:
        return (await tasks.update_chat_task(room, "1", **fields)).data

    made = (await tasks.create_chat_task(room, subject="Paint the door")).data
    assert (made.started_at, made.completed_at) == (None, None)
    waiting = await update(status="pending")
    assert (waiting.started_at, waiting.completed_at) == (None, None)
    begun = await update(status="in_progress")
    assert begun.started_at == begun.updated_at and begun.completed_at is None
    done = await update(status="completed")
    assert (done.started_at, done.completed_at) == (begun.started_at, done.updated_at)
    again = await update(status="in_review")
    assert (again.started_at, again.completed_at) == (begun.started_at, None)
