"""The life of a delivery: processing, processed, failed, and every attempt in between."""

from __future__ import annotations

from typing import Any

import pytest

from harness.cast import UNKNOWN_ID, Bot, Cast, Person
from harness.refusals import INVALID, NOT_FOUND, Refusal, refused


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


@pytest.fixture
async def sent(ann: Person, bot: Bot, room: str) -> str:
    return (await ann.say(room, "please", bot)).id


class Marks:
    """The three marks of one agent on one message."""

    def __init__(self, bot: Bot, room: str, message: str) -> None:
        self._api, self._target = bot.rest.agent_api_messages, (room, message)

    async def processing(self) -> tuple[str, int]:
        return self._of(await self._api.mark_agent_message_processing(*self._target))

    async def processed(self) -> tuple[str, int]:
        return self._of(await self._api.mark_agent_message_processed(*self._target))

    async def failed(self, error: str = "no luck") -> tuple[str, int]:
        return self._of(await self._api.mark_agent_message_failed(*self._target, error=error))

    async def refused(self, mark: str) -> Refusal:
        error = {"error": "no luck"} if mark == "failed" else {}
        return await refused(getattr(self._api, f"mark_agent_message_{mark}"), *self._target, **error)

    def _of(self, reply: Any) -> tuple[str, int]:
        assert (reply.data.id, reply.data.success) == (self._target[1], True)
        return reply.data.status, reply.data.attempt_number


@pytest.fixture
def marks(bot: Bot, room: str, sent: str) -> Marks:
    return Marks(bot, room, sent)


def history(delivery: dict[str, Any]) -> list[tuple[int, str, str | None]]:
    return [(one["attempt_number"], one["status"], one.get("error")) for one in delivery["attempts"]]


async def test_a_message_is_worked_on_and_done(ann: Person, bot: Bot, room: str, sent: str, marks: Marks) -> None:
    assert await marks.processing() == ("processing", 1)
    running = await ann.delivery(room, sent, bot)
    assert (running["status"], running["current_attempt"], running.get("processed_at")) == ("processing", 1, None)
    assert history(running) == [(1, "processing", None)]

    assert await marks.processed() == ("processed", 1)
    done = await ann.delivery(room, sent, bot)
    assert (done["status"], done["current_attempt"]) == ("processed", 1)
    assert history(done) == [(1, "success", None)]
    (attempt,) = done["attempts"]
    assert attempt["started_at"] <= attempt["completed_at"]
    assert done["processed_at"] is not None


async def test_a_failure_keeps_its_reason_and_may_be_tried_again(
    ann: Person, bot: Bot, room: str, sent: str, marks: Marks
) -> None:
    await marks.processing()
    assert await marks.failed("the model said no") == ("failed", 1)
    assert (await bot.next(room)).id == sent

    assert await marks.processing() == ("processing", 2)
    assert await marks.processed() == ("processed", 2)

    done = await ann.delivery(room, sent, bot)
    assert (done["status"], done["current_attempt"]) == ("processed", 2)
    assert history(done) == [(1, "failed", "the model said no"), (2, "success", None)]
    assert await bot.next(room) is None


async def test_a_second_start_is_a_second_attempt(ann: Person, bot: Bot, room: str, sent: str, marks: Marks) -> None:
    assert await marks.processing() == ("processing", 1)
    assert await marks.processing() == ("processing", 2)
    assert history(await ann.delivery(room, sent, bot)) == [(1, "failed", "superseded"), (2, "processing", None)]
    assert await marks.processed() == ("processed", 2)


async def test_starting_again_reopens_what_was_done(ann: Person, bot: Bot, room: str, sent: str, marks: Marks) -> None:
    await marks.processing()
    await marks.processed()

    assert await marks.processing() == ("processing", 2)

    assert (await bot.next(room)).id == sent
    assert (await ann.delivery(room, sent, bot))["status"] == "processing"


@pytest.mark.parametrize("mark", ["processed", "failed"])
async def test_nothing_ends_that_was_not_started(
    ann: Person, bot: Bot, room: str, sent: str, marks: Marks, mark: str
) -> None:
    refusal = await marks.refused(mark)
    assert refusal == INVALID and refusal.names("/processing_attempt")
    assert await ann.delivery(room, sent, bot) is None


@pytest.mark.parametrize("first", ["processed", "failed"])
@pytest.mark.parametrize("second", ["processed", "failed"])
async def test_an_attempt_ends_once(marks: Marks, first: str, second: str) -> None:
    await marks.processing()
    await getattr(marks, first)()
    refusal = await marks.refused(second)
    assert refusal == INVALID and refusal.names("/processing_attempt")


async def test_a_failure_without_a_reason_is_refused(bot: Bot, room: str, sent: str, marks: Marks) -> None:
    await marks.processing()
    refusal = await refused(bot.rest.agent_api_messages.mark_agent_message_failed, room, sent, error="")
    assert refusal == INVALID and refusal.names("/error")
    assert await marks.failed() == ("failed", 1)


@pytest.mark.parametrize("mark", ["processing", "processed", "failed"])
async def test_a_message_that_is_not_in_the_room_is_not_found(
    ann: Person, bot: Bot, sent: str, room: str, mark: str
) -> None:
    other_room = await ann.open_room(bot)
    for where, message in ((room, UNKNOWN_ID), (room, "no-id"), (other_room, sent)):
        assert await Marks(bot, where, message).refused(mark) == NOT_FOUND


async def test_an_agent_may_mark_its_own_message(ann: Person, bot: Bot, room: str) -> None:
    done = Marks(bot, room, (await bot.say(room, "for Ann", ann)).id)
    assert [await done.processing(), await done.processed()] == [("processing", 1), ("processed", 1)]

    broken = Marks(bot, room, (await bot.say(room, "for Ann", ann)).id)
    assert [await broken.processing(), await broken.failed()] == [("processing", 1), ("failed", 1)]


async def test_only_those_in_the_room_mark(ann: Person, sent: str, room: str, cast: Cast) -> None:
    outsider = await cast.bot(ann)
    assert await Marks(outsider, room, sent).refused("processing") == NOT_FOUND


async def test_a_mark_needs_no_body_and_takes_an_empty_one(bot: Bot, room: str, sent: str) -> None:
    path = f"/api/v1/agent/chats/{room}/messages/{sent}"
    # n8n names a content type for the body that it does not send.
    started = await bot.raw.post(f"{path}/processing", headers={"content-type": "application/json"})
    ended = await bot.raw.post(f"{path}/processed", headers={"content-type": "application/json"})
    assert (started.status_code, ended.status_code) == (200, 200)
    assert ended.json() == {"data": {"id": sent, "success": True, "status": "processed", "attempt_number": 1}}
