"""What a person reads in a room, and what they say there."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

import pytest
from band_rest.types import ChatEventRequest, ChatMessageRequest
from band_rest.types import ChatMessageRequestMentionsItem as Mention

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, mention, message, token
from harness.refusals import INVALID, NOT_FOUND, refused, unprocessable

KINDS = ("tool_call", "tool_result", "thought", "error", "task")


@pytest.fixture
async def history(ann: Person, bot: Bot) -> tuple[str, dict[str, str]]:
    """A room with one row of each kind, oldest first."""
    room = await ann.open_room(bot)
    rows = {"text": (await ann.say(room, "hello", bot)).id}
    for kind in KINDS:
        event = ChatEventRequest(content=f"a {kind}", message_type=kind)
        rows[kind] = (await bot.rest.agent_api_events.create_agent_chat_event(room, event=event)).data.id
    rows["answer"] = (await bot.say(room, "hello yourself", ann)).id
    return room, rows


async def listed(person: Person, room: str, **query: Any) -> list[str]:
    return [row.id for row in (await person.rest.human_api_messages.list_my_chat_messages(room, **query)).data]


async def test_a_person_sees_everything_newest_first(ann: Person, history: tuple[str, dict[str, str]]) -> None:
    room, rows = history
    page = await ann.rest.human_api_messages.list_my_chat_messages(room)
    assert [row.id for row in page.data] == [*rows.values()][::-1]
    assert (page.metadata.has_more, page.metadata.limit, page.metadata.next_cursor) == (False, 20, None)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"message_type": "text"}, ["answer", "text"]),
        ({"message_type": "thought"}, ["thought"]),
        ({"message_type": "attention"}, []),
        ({"message_types": ["error", "task"]}, ["task", "error"]),
        ({"message_types": "tool_call"}, ["tool_call"]),
        ({"exclude_message_types": ["tool_call", "tool_result", "thought", "error", "task"]}, ["answer", "text"]),
        ({"exclude_message_types": ["text", "thought"]}, ["task", "error", "tool_result", "tool_call"]),
        ({"message_type": "system"}, []),
        ({"message_type": "participant"}, []),
    ],
)
async def test_kinds_can_be_picked_or_left_out(
    ann: Person, history: tuple[str, dict[str, str]], query: dict[str, Any], expected: list[str]
) -> None:
    room, rows = history
    assert await listed(ann, room, **query) == [rows[name] for name in expected]


@pytest.mark.parametrize(
    "query",
    [
        {"message_type": "text", "message_types": ["error"]},
        {"message_type": "text", "exclude_message_types": ["error"]},
        {"message_types": ["text"], "exclude_message_types": ["error"]},
    ],
)
async def test_kinds_are_picked_in_one_way_at_a_time(
    ann: Person, history: tuple[str, dict[str, str]], query: dict[str, Any]
) -> None:
    refusal = await refused(ann.rest.human_api_messages.list_my_chat_messages, history[0], **query)
    assert (refusal.error, refusal.status) == ("UnprocessableEntityError", 422)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("message_type", "gossip"),
        ("limit", 0),
        ("page", 0),
        ("page_size", 0),
        ("cursor", "no cursor"),
    ],
)
async def test_a_parameter_that_is_none_is_refused_by_name(
    ann: Person, history: tuple[str, dict[str, str]], parameter: str, value: Any
) -> None:
    refusal = await refused(ann.rest.human_api_messages.list_my_chat_messages, history[0], **{parameter: value})
    assert refusal == INVALID and refusal.names(f"/{parameter}")


@pytest.mark.parametrize("value", ["text,gossip", "text, error"])
async def test_a_list_of_kinds_holds_kinds_and_no_spaces(
    ann: Person, history: tuple[str, dict[str, str]], value: str
) -> None:
    refusal = await refused(ann.rest.human_api_messages.list_my_chat_messages, history[0], message_types=value)
    assert refusal == INVALID
    assert any(pointer.startswith("/message_types") for pointer in refusal.details)


async def test_since_is_strictly_after_in_any_time_zone(ann: Person, history: tuple[str, dict[str, str]]) -> None:
    room, rows = history
    thought = (await ann.message(room, rows["thought"])).inserted_at
    newer = [rows["answer"], rows["task"], rows["error"]]

    assert await listed(ann, room, since=thought) == newer
    assert await listed(ann, room, since=thought.astimezone(timezone(timedelta(hours=5, minutes=30)))) == newer
    assert await listed(ann, room, since=thought - timedelta(microseconds=1)) == [*newer, rows["thought"]]
    assert await listed(ann, room, since=thought, message_type="text") == [rows["answer"]]
    assert await listed(ann, room, since=thought, page=1, page_size=2) == newer[:2]


async def test_since_and_a_cursor_exclude_each_other(ann: Person, history: tuple[str, dict[str, str]]) -> None:
    room, _ = history
    page = await ann.rest.human_api_messages.list_my_chat_messages(room, limit=2)
    since = page.data[0].inserted_at
    refusal = await refused(
        ann.rest.human_api_messages.list_my_chat_messages, room, since=since, cursor=page.metadata.next_cursor
    )
    assert (refusal.error, refusal.status) == ("UnprocessableEntityError", 422)


async def test_a_cursor_walks_back_to_the_beginning(ann: Person, history: tuple[str, dict[str, str]]) -> None:
    room, rows = history
    walked: list[str] = []
    cursor = None
    while True:
        page = await ann.rest.human_api_messages.list_my_chat_messages(room, limit=3, cursor=cursor)
        walked += [row.id for row in page.data]
        assert page.metadata.has_more == (page.metadata.next_cursor is not None)
        cursor = page.metadata.next_cursor
        if cursor is None:
            break
    assert walked == [*rows.values()][::-1]


async def test_numbered_pages_start_with_the_newest(ann: Person, history: tuple[str, dict[str, str]]) -> None:
    room, rows = history
    walked: list[str] = []
    for number in (1, 2, 3):
        reply = await ann.rest.human_api_messages.with_raw_response.list_my_chat_messages(
            room, page=number, page_size=3
        )
        assert {"deprecation", "sunset"} <= reply.headers.keys()
        metadata = reply.data.metadata
        assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (number, 3, 7, 3)
        assert (metadata.limit, metadata.has_more) == (3, number < 3)
        walked += [row.id for row in reply.data.data]
    assert walked == [*rows.values()][::-1]


async def test_what_a_person_says_reaches_whom_they_mention(ann: Person, bot: Bot, cast: Cast) -> None:
    other = await cast.bot(ann)
    room = await ann.open_room(bot, other)

    sent = await ann.say(room, "hello", bot)

    assert sent.success is True
    assert [(one.id, one.handle, one.name) for one in sent.recipients] == [(bot.id, bot.handle, bot.name)]
    row = await ann.message(room, sent.id)
    assert (row.content, row.sender_id, row.sender_type) == (f"{token(bot)} hello", ann.id, "User")
    assert row.metadata.model_dump()["status"] == "sent"
    assert (await bot.next(room)).id == sent.id
    assert await other.next(room) is None


@pytest.mark.parametrize("spell", ["id", "id and name", "id and handle", "handle"])
async def test_the_ways_in_which_clients_mention(ann: Person, bot: Bot, spell: str) -> None:
    room = await ann.open_room(bot)
    mentioned = {
        "id": Mention(id=bot.id),
        "id and name": Mention(id=bot.id, name=bot.name),
        "id and handle": Mention(id=bot.id, handle=bot.handle),
        "handle": Mention(handle=f"@{bot.handle}"),
    }[spell]
    request = ChatMessageRequest(content=f"@{bot.name} hello", mentions=[mentioned])
    sent = (await ann.rest.human_api_messages.send_my_chat_message(room, message=request)).data
    assert [one.id for one in sent.recipients] == [bot.id]
    assert (await ann.message(room, sent.id)).content == f"{token(bot)} @{bot.name} hello"


async def test_people_talk_to_people(ann: Person, bot: Bot) -> None:
    room = await bot.open_room(ann)
    answer = await bot.say(room, "for you", ann)
    assert [(one.id, one.handle) for one in answer.recipients] == [(ann.id, ann.handle)]


async def test_each_fault_has_its_code(ann: Person, bot: Bot, cast: Cast) -> None:
    outside = await cast.bot(ann)
    room = await ann.open_room(bot)
    faults = [
        ("validation_error", " ", [mention(bot)]),
        ("validation_error", "x" * 524_289, [mention(bot)]),
        ("mentions_required", "hello", []),
        ("mentions_required", "hello", [mention(bot, "reference")]),
        ("cannot_mention_self", "hello", [mention(ann)]),
        ("duplicate_mentions", "hello", [mention(bot), mention(bot)]),
        ("mentioned_participant_not_in_room", "hello", [mention(outside)]),
        ("invalid_mention_kind", "hello", [mention(bot, "shout")]),
        ("handle_not_found", "hello", [Mention(handle=outside.handle)]),
        ("mention_missing_identifier", "hello", [Mention(name=bot.name)]),
    ]
    for code, content, mentions in faults:
        request = ChatMessageRequest(content=content, mentions=mentions)
        refusal = await refused(ann.rest.human_api_messages.send_my_chat_message, room, message=request)
        assert refusal == unprocessable(code)
    attached = ChatMessageRequest(content="hello", mentions=[mention(bot)], attachment_ids=[UNKNOWN_ID])
    refusal = await refused(ann.rest.human_api_messages.send_my_chat_message, room, message=attached)
    assert refusal == unprocessable("unknown_attachment")
    assert await ann.texts(room) == []


async def test_whoever_left_says_no_more(ann: Person, bot: Bot) -> None:
    room = await bot.open_room(ann)
    await ann.rest.human_api_participants.remove_my_chat_participant(room, ann.id)
    send = ann.rest.human_api_messages.send_my_chat_message
    assert await refused(send, room, message=message("hello", bot)) == NOT_FOUND
