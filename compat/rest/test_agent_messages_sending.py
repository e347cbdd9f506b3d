"""Messages as an agent sends them: whom they reach, what is stored, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import ChatMessageRequest
from band_rest.types import ChatMessageRequestMentionsItem as Mention

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, delivery_of, mention, token
from harness.refusals import INVALID, refused, refused_raw, unprocessable

CONTENT_MAX_BYTES = 524_288


@pytest.fixture
async def reader(ann: Person, cast: Cast) -> Bot:
    return await cast.bot(ann, "Reader")


@pytest.fixture
async def room(ann: Person, bot: Bot, reader: Bot) -> str:
    """Ann, her Writer, who owns the room, and her Reader."""
    return await bot.open_room(ann, reader)


async def send(sender: Bot, room: str, content: str, mentions: list[Mention], **more: Any) -> Any:
    request = ChatMessageRequest(content=content, mentions=mentions, **more)
    return (await sender.rest.agent_api_messages.create_agent_chat_message(room, message=request)).data


async def test_a_message_reaches_those_it_mentions_in_that_order(ann: Person, bot: Bot, reader: Bot, room: str) -> None:
    sent = await send(bot, room, "Look at this", [mention(reader), mention(ann)])

    assert sent.success is True
    assert [(one.id, one.handle) for one in sent.recipients] == [(reader.id, reader.handle), (ann.id, ann.handle)]
    row = await ann.message(room, sent.id)
    assert row.content == f"{token(reader)} {token(ann)} Look at this"
    assert (row.message_type, row.chat_room_id, row.attachments) == ("text", room, [])
    assert (row.sender_id, row.sender_type, row.sender_name) == (bot.id, "Agent", bot.name)
    assert [one["id"] for one in row.metadata.model_dump()["mentions"]] == [reader.id, ann.id]
    assert row.metadata.model_dump()["status"] == "sent"
    assert row == (await bot.rest.agent_api_context.get_agent_chat_context(room)).data[0]


async def test_a_token_in_the_text_is_not_repeated(ann: Person, bot: Bot, reader: Bot, room: str) -> None:
    typed = f"See {token(reader)} and @{ann.handle}"
    sent = await send(bot, room, typed, [mention(ann), mention(reader)])
    assert (await ann.message(room, sent.id)).content == f"{token(ann)} {typed}"


@pytest.mark.parametrize("spell", [str, str.upper, "@{}".format, lambda handle: f"@{handle.upper()}"])
async def test_a_mention_by_handle_alone_is_resolved(ann: Person, bot: Bot, reader: Bot, room: str, spell: Any) -> None:
    sent = await send(bot, room, "hello", [Mention(handle=spell(reader.handle))])
    assert [(one.id, one.handle) for one in sent.recipients] == [(reader.id, reader.handle)]
    assert (await ann.message(room, sent.id)).content == f"{token(reader)} hello"


@pytest.mark.parametrize(
    "extra", [{"handle": None}, {"handle": ""}, {"name": None}, {"name": "Anybody"}, {"handle": "nobody"}]
)
async def test_an_id_decides_whatever_stands_beside_it(
    bot: Bot, reader: Bot, room: str, extra: dict[str, str | None]
) -> None:
    sent = await send(bot, room, "hello", [Mention(id=reader.id, **extra)])
    assert [one.id for one in sent.recipients] == [reader.id]


async def test_a_reference_is_named_but_not_delivered(ann: Person, bot: Bot, reader: Bot, room: str) -> None:
    sent = await send(bot, room, f"{token(reader)} wrote this", [mention(ann, "mention"), mention(reader, "reference")])

    assert [one.id for one in sent.recipients] == [ann.id]
    assert await reader.next(room) is None
    row = await ann.message(room, sent.id)
    assert row.content == f"{token(ann)} {token(reader)} wrote this"
    assert delivery_of(row, reader) is None


@pytest.mark.parametrize("content", ["", " \n\t ", "\u200b", "\u0301"])
async def test_nothing_to_see_is_refused(ann: Person, bot: Bot, reader: Bot, room: str, content: str) -> None:
    request = ChatMessageRequest(content=content, mentions=[mention(reader)])
    refusal = await refused(bot.rest.agent_api_messages.create_agent_chat_message, room, message=request)
    assert refusal == INVALID
    assert "can't be blank" in refusal.details["/message/content"]
    assert await ann.texts(room) == []


@pytest.mark.parametrize("content", ["?", "漢", "🙂", "7"])
async def test_one_visible_character_is_enough(ann: Person, bot: Bot, reader: Bot, room: str, content: str) -> None:
    await send(bot, room, content, [mention(reader)])
    assert await ann.texts(room) == [(bot.id, f"{token(reader)} {content}")]


async def test_content_may_be_half_a_mebibyte_and_no_more(ann: Person, bot: Bot, reader: Bot, room: str) -> None:
    longest = "é" * (CONTENT_MAX_BYTES // 2)
    sent = await send(bot, room, longest, [mention(reader)])
    assert (await ann.message(room, sent.id)).content == f"{token(reader)} {longest}"

    # The second fits in bytes, but not in a socket frame: each quote takes two there.
    for content in (longest + "x", '"' * 460_000):
        request = ChatMessageRequest(content=content, mentions=[mention(reader)])
        refusal = await refused(bot.rest.agent_api_messages.create_agent_chat_message, room, message=request)
        assert refusal == INVALID and refusal.names("/message/content")
    assert len(await ann.texts(room)) == 1


async def test_each_fault_of_a_mention_has_its_code(ann: Person, bot: Bot, reader: Bot, room: str, cast: Cast) -> None:
    outside = await cast.bot(ann)
    faults: list[tuple[str, list[Mention]]] = [
        ("mentions_required", []),
        ("mentions_required", [mention(reader, "reference")]),
        ("cannot_mention_self", [mention(bot)]),
        ("cannot_mention_self", [mention(reader), Mention(handle=bot.handle)]),
        ("duplicate_mentions", [mention(reader), mention(reader)]),
        ("duplicate_mentions", [mention(reader), Mention(handle=reader.handle)]),
        ("mentioned_participant_not_in_room", [mention(outside)]),
        ("mentioned_participant_not_in_room", [Mention(id=UNKNOWN_ID)]),
        ("invalid_mention_kind", [mention(reader, "shout")]),
        ("handle_not_found", [Mention(handle=outside.handle)]),
        ("handle_not_found", [Mention(handle="nobody")]),
        ("mention_missing_identifier", [Mention(name="Reader")]),
        ("mention_missing_identifier", [Mention()]),
        ("mention_missing_identifier", [Mention(id=None, handle=None)]),
    ]
    for code, mentions in faults:
        request = ChatMessageRequest(content="hello", mentions=mentions)
        refusal = await refused(bot.rest.agent_api_messages.create_agent_chat_message, room, message=request)
        assert refusal == unprocessable(code), mentions
        if code == "mentioned_participant_not_in_room":
            # band-sdk knows this refusal by its text.
            assert refusal.message == code
    assert await ann.texts(room) == []


async def test_mentions_must_be_there_even_when_a_client_forgets_the_key(bot: Bot, room: str) -> None:
    reply = await bot.raw.post(f"/api/v1/agent/chats/{room}/messages", json={"message": {"content": "hello"}})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "mentions_required")


async def test_an_attachment_that_is_not_in_the_room_is_refused(ann: Person, bot: Bot, reader: Bot, room: str) -> None:
    request = ChatMessageRequest(content="hello", mentions=[mention(reader)], attachment_ids=[UNKNOWN_ID])
    refusal = await refused(bot.rest.agent_api_messages.create_agent_chat_message, room, message=request)
    assert refusal == unprocessable("unknown_attachment")
    assert await ann.texts(room) == []


async def test_an_empty_list_of_attachments_is_none(bot: Bot, reader: Bot, room: str) -> None:
    assert (await send(bot, room, "hello", [mention(reader)], attachment_ids=[])).success


@pytest.mark.parametrize("field", ["attachment_ids", "kind"])
async def test_a_null_that_the_platform_rejects_is_rejected(bot: Bot, reader: Bot, room: str, field: str) -> None:
    body: dict[str, Any] = {"content": "hello", "mentions": [{"id": reader.id}]}
    if field == "kind":
        body["mentions"][0]["kind"] = None
    else:
        body[field] = None
    reply = await bot.raw.post(f"/api/v1/agent/chats/{room}/messages", json={"message": body})
    assert refused_raw(reply).status == 422


async def test_the_typescript_sdk_may_add_its_two_keys(ann: Person, bot: Bot, reader: Bot, room: str) -> None:
    reply = await bot.raw.post(
        f"/api/v1/agent/chats/{room}/messages",
        json={
            "message": {
                "content": "hello",
                "mentions": [{"id": reader.id}],
                "message_type": "text",
                "metadata": {"status": "forged", "delegation": {"version": 1}},
            }
        },
    )
    assert reply.status_code == 201
    metadata = (await ann.message(room, reply.json()["data"]["id"])).metadata.model_dump()
    assert (metadata["status"], metadata.get("delegation")) == ("sent", None)


async def test_other_keys_in_a_message_are_refused_by_name(bot: Bot, reader: Bot, room: str) -> None:
    reply = await bot.raw.post(
        f"/api/v1/agent/chats/{room}/messages",
        json={"message": {"content": "hello", "mentions": [{"id": reader.id}], "priority": 1}},
    )
    refusal = refused_raw(reply)
    assert (refusal.status, refusal.code) == (422, "validation_error") and refusal.names("/message/priority")


async def test_an_agent_hears_nothing_that_does_not_mention_it(ann: Person, bot: Bot, reader: Bot, room: str) -> None:
    await send(bot, room, "for Ann only", [mention(ann)])
    await ann.say(room, "for the writer only", bot)
    assert await reader.next(room) is None
    assert (await reader.rest.agent_api_messages.list_agent_messages(room, status="all")).data == []
