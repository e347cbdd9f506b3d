"""Reading around a message, as 0.0.51 does: what came after it, before it, and on both sides."""

from __future__ import annotations

from typing import Any

import pytest

from harness.cast import UNKNOWN_ID, Bot, Person
from harness.refusals import NOT_FOUND, refused, unprocessable


@pytest.fixture
async def timeline(ann: Person, bot: Bot) -> tuple[str, list[str]]:
    room = await ann.open_room(bot)
    return room, [(await ann.say(room, f"number {number}", bot)).id for number in range(7)]


async def read(ann: Person, room: str, **query: Any) -> tuple[list[str], dict[str, Any]]:
    page = await ann.rest.human_api_messages.list_my_chat_messages(room, **query)
    assert page.metadata.next_cursor is None
    return [row.id for row in page.data], page.metadata.model_dump()


async def test_after_catches_up_oldest_first(ann: Person, timeline: tuple[str, list[str]]) -> None:
    room, sent = timeline
    caught, metadata = await read(ann, room, after=sent[1], limit=3)
    assert (caught, metadata["has_more"]) == (sent[2:5], True)
    caught, metadata = await read(ann, room, after=caught[-1], limit=3)
    assert (caught, metadata["has_more"]) == (sent[5:7], False)
    caught, metadata = await read(ann, room, after=sent[6])
    assert (caught, metadata["has_more"]) == ([], False)


async def test_before_scrolls_back_newest_first(ann: Person, timeline: tuple[str, list[str]]) -> None:
    room, sent = timeline
    scrolled, metadata = await read(ann, room, before=sent[5], limit=3)
    assert (scrolled, metadata["has_more"]) == ([sent[4], sent[3], sent[2]], True)
    scrolled, metadata = await read(ann, room, before=scrolled[-1], limit=3)
    assert (scrolled, metadata["has_more"]) == ([sent[1], sent[0]], False)


async def test_around_shows_both_sides_newest_first(ann: Person, timeline: tuple[str, list[str]]) -> None:
    room, sent = timeline
    window, metadata = await read(ann, room, around=sent[3], limit=3)
    assert window == [sent[4], sent[3], sent[2]]
    assert (metadata["has_older"], metadata["has_newer"]) == (True, True)


@pytest.mark.parametrize(
    ("anchor", "expected", "older", "newer"), [(0, [2, 1, 0], False, True), (6, [6, 5, 4], True, False)]
)
async def test_at_an_end_the_other_side_fills_the_window(
    ann: Person, timeline: tuple[str, list[str]], anchor: int, expected: list[int], older: bool, newer: bool
) -> None:
    room, sent = timeline
    window, metadata = await read(ann, room, around=sent[anchor], limit=3)
    assert window == [sent[number] for number in expected]
    assert (metadata["has_older"], metadata["has_newer"]) == (older, newer)


async def test_an_anchor_only_marks_a_place(ann: Person, bot: Bot, timeline: tuple[str, list[str]]) -> None:
    room, _ = timeline
    answer = (await bot.say(room, "an answer", ann)).id
    later = (await ann.say(room, "later", bot)).id
    window, _ = await read(ann, room, around=answer, limit=2, exclude_message_types=["text"])
    assert window == []
    caught, _ = await read(ann, room, after=answer, message_type="text")
    assert caught == [later]


@pytest.mark.parametrize("anchor", ["after", "before", "around"])
async def test_an_anchor_is_a_message_of_this_room(
    ann: Person, bot: Bot, timeline: tuple[str, list[str]], anchor: str
) -> None:
    room, _ = timeline
    elsewhere = await ann.open_room(bot)
    foreign = (await ann.say(elsewhere, "elsewhere", bot)).id
    for nothing in (UNKNOWN_ID, foreign):
        refusal = await refused(ann.rest.human_api_messages.list_my_chat_messages, room, **{anchor: nothing})
        assert refusal == NOT_FOUND


async def test_an_anchor_stands_alone(ann: Person, timeline: tuple[str, list[str]]) -> None:
    room, sent = timeline
    page = await ann.rest.human_api_messages.list_my_chat_messages(room, limit=2)
    for others in (
        {"before": sent[1]},
        {"around": sent[1]},
        {"cursor": page.metadata.next_cursor},
        {"since": page.data[0].inserted_at},
        {"page": 1},
        {"page_size": 2},
    ):
        refusal = await refused(ann.rest.human_api_messages.list_my_chat_messages, room, after=sent[0], **others)
        assert refusal == unprocessable("invalid_params"), others
