"""Files of a room: up and down again byte for byte, in part, once for equal bytes, and never to be run by a browser."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from band_rest.core.parse_error import ParsingError
from band_rest.types import Attachment, ChatMessageRequest

from harness.cast import UNKNOWN_ID, Bot, Cast, Identity, Person, mention
from harness.files import PNG, described, download, get, options, put, upload
from harness.refusals import NO_RETRY, NOT_FOUND, Refusal, raw, refused, refused_raw, unprocessable
from harness.server import Server

TEXT = "Drei Chinesen mit dem Kontrabaß\n".encode()
HTML = b"<!doctype html><html><script>alert(1)</script></html>"


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


def attached(*files: str, to: Identity) -> ChatMessageRequest:
    return ChatMessageRequest(content="See there", mentions=[mention(to)], attachment_ids=list(files))


async def download_refused(bot: Bot, room: str, file: str, **span: str) -> Refusal:
    async def method(request_options: Any) -> bytes:
        return await download(bot, room, file, request_options=request_options, **span)

    return await refused(method)


async def test_what_is_uploaded_comes_back(bot: Bot, room: str) -> None:
    file = await upload(bot, room, TEXT, "song.txt")

    assert (file.name, file.bytes, file.has_thumb, file.expires_at) == ("song.txt", len(TEXT), False, None)
    assert file.sha_256 == hashlib.sha256(TEXT).hexdigest()
    assert file.content_type.startswith("text/plain")
    assert await download(bot, room, file.id) == TEXT


@pytest.mark.parametrize("size", [0, 1, 65_537, 3_000_000])
async def test_any_number_of_any_bytes(bot: Bot, room: str, size: int) -> None:
    content = (bytes(range(256)) * (size // 256 + 1))[:size]
    file = await upload(bot, room, content, "some.bin")
    assert file.bytes == size
    assert await download(bot, room, file.id) == content


async def test_an_upload_may_be_a_stream(bot: Bot, room: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield TEXT

    made = await bot.rest.agent_api_files.upload_agent_chat_file(
        room, request=pieces(), request_options=options(TEXT * 64)
    )
    assert await download(bot, room, made.data.id) == TEXT * 64


@pytest.mark.parametrize(
    ("content", "declared", "expected"),
    [
        (PNG, "text/plain", "image/png"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "text/plain", "application/pdf"),
        (b"GIF89a" + bytes(20), "image/png", "image/gif"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(20), None, "image/jpeg"),
        (b"PK\x03\x04" + bytes(40), "text/plain", "application/zip"),
        (b"plain words", "image/png", "text/plain"),
        (bytes(64), "text/plain", "application/octet-stream"),
    ],
)
async def test_a_file_is_what_its_bytes_say(
    bot: Bot, room: str, content: bytes, declared: str | None, expected: str
) -> None:
    file = await upload(bot, room, content, "anything", declared)
    assert file.content_type.split(";")[0] == expected


async def test_equal_bytes_are_one_file_in_a_room(ann: Person, bot: Bot, room: str) -> None:
    first = await put(bot, room, TEXT, described(TEXT, "first.txt"))
    again = await put(bot, room, TEXT, described(TEXT, "second.txt"))
    by_person = await put(ann, room, TEXT, described(TEXT, "third.txt"))
    other = await put(bot, await ann.open_room(bot), TEXT)

    assert [reply.status_code for reply in (first, again, by_person, other)] == [201, 200, 200, 201]
    records = [reply.json()["data"] for reply in (first, again, by_person, other)]
    assert records[0]["id"] == records[1]["id"] == records[2]["id"] != records[3]["id"]
    assert records[0]["sha256"] == records[3]["sha256"]


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=5-9", slice(5, 10)),
        ("bytes=10-", slice(10, None)),
        ("bytes=-7", slice(-7, None)),
        ("bytes=-9999", slice(None)),
        ("bytes=5-9999", slice(5, None)),
    ],
)
async def test_a_part_of_a_file(bot: Bot, room: str, span: str, expected: slice) -> None:
    file = await upload(bot, room, TEXT)
    assert await download(bot, room, file.id, range=span) == TEXT[expected]

    reply = await get(bot, room, file.id, span)
    start, stop, _ = expected.indices(len(TEXT))
    assert (reply.status_code, reply.content) == (206, TEXT[expected])
    assert reply.headers["content-range"] == f"bytes {start}-{stop - 1}/{len(TEXT)}"
    assert reply.headers["content-length"] == str(stop - start)


@pytest.mark.parametrize("span", ["bytes=a-b", "lines=1-2", "bytes=9-5", "bytes=", "bytes=0-1,3-4"])
async def test_a_range_that_is_none_means_the_whole_file(bot: Bot, room: str, span: str) -> None:
    file = await upload(bot, room, TEXT)
    reply = await get(bot, room, file.id, span)
    assert (reply.status_code, reply.content) == (200, TEXT)
    assert await download(bot, room, file.id, range=span) == TEXT


@pytest.mark.parametrize("beyond", [f"bytes={len(TEXT)}-", "bytes=9999-10000", "bytes=-0"])
async def test_a_range_beyond_the_end_cannot_be_satisfied(bot: Bot, room: str, beyond: str) -> None:
    file = await upload(bot, room, TEXT)
    refusal = refused_raw(await get(bot, room, file.id, beyond))
    assert (refusal.status, refusal.code) == (416, "range_not_satisfiable")
    # Both clients expect a bare string there, and nothing of an envelope; the status comes through all the same.
    with pytest.raises(ParsingError) as unparsed:
        await download(bot, room, file.id, range=beyond, request_options=NO_RETRY)
    assert unparsed.value.status_code == 416


async def test_nothing_is_run_by_a_browser(ann: Person, bot: Bot, room: str) -> None:
    file = await upload(bot, room, HTML, "page.html", "text/html")
    for reader in (bot, ann):
        headers = (await get(reader, room, file.id)).headers
        assert headers["content-disposition"].startswith("attachment")
        assert "page.html" in headers["content-disposition"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in headers["content-security-policy"]


@pytest.mark.parametrize("name", ["../../../etc/passwd", "..\\..\\boot.ini", "/etc/passwd", 'a"; filename="b.html'])
async def test_a_name_leads_nowhere(bot: Bot, room: str, name: str) -> None:
    reply = await put(bot, room, TEXT, described(TEXT, name))
    assert reply.status_code == 201
    file = reply.json()["data"]
    assert "/" not in file["name"] and "\\" not in file["name"]
    down = await get(bot, room, file["id"])
    assert down.content == TEXT and down.headers["content-disposition"].count('filename="') == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"x-file-sha256": "0" * 64},
        {"x-file-sha256": "nonsense"},
        {"x-file-sha256": hashlib.sha256(TEXT).hexdigest().upper()},
        {"x-file-sha256": None},
        {"x-file-name": None},
        {"x-file-name": ""},
        {"x-file-name": "x" * 5000},
    ],
)
async def test_an_upload_that_is_not_as_described_is_refused(bot: Bot, room: str, wrong: dict[str, str | None]) -> None:
    headers = {name: value for name, value in {**described(TEXT), **wrong}.items() if value is not None}
    reply = await put(bot, room, TEXT, headers)
    assert reply.status_code in (400, 422), reply.text
    # Nothing was kept: the right description makes it new.
    assert (await put(bot, room, TEXT)).status_code == 201


@pytest.mark.parametrize("size", [33, 20_000_000])
async def test_a_refusal_is_heard_though_the_upload_was_not_read(bot: Bot, room: str, size: int) -> None:
    # The server knows from the headers that it will not take the file. A client still sends it to the end, must get the
    # answer then, and goes on with the same connection.
    content = b"x" * size
    nameless = {name: value for name, value in described(content).items() if name != "x-file-name"}
    for _ in range(5):
        assert (await put(bot, room, content, nameless)).status_code == 422
        assert (await bot.raw.get("/api/v1/agent/me")).status_code == 200
        assert refused_raw(await put(bot, UNKNOWN_ID, content)) == raw(NOT_FOUND)
        assert (await bot.raw.get("/api/v1/agent/me")).status_code == 200


async def test_what_cannot_be_reached_does_not_exist(ann: Person, bot: Bot, room: str, cast: Cast) -> None:
    file = await upload(bot, room, TEXT)
    other = await ann.open_room(bot)
    stranger = await cast.person("stranger")
    theirs = await cast.bot(stranger)
    for where, which in ((room, UNKNOWN_ID), (room, "not-an-id"), (other, file.id), (UNKNOWN_ID, file.id)):
        assert await download_refused(bot, where, which) == NOT_FOUND
    assert await download_refused(theirs, room, file.id) == NOT_FOUND
    assert refused_raw(await get(stranger, room, file.id)) == raw(NOT_FOUND)
    upload_method = bot.rest.agent_api_files.upload_agent_chat_file
    refusal = await refused(upload_method, UNKNOWN_ID, request=TEXT, request_options=options(TEXT))
    assert refusal == NOT_FOUND
    assert refused_raw(await put(theirs, room, TEXT)) == raw(NOT_FOUND)


async def test_people_share_files_too(ann: Person, bot: Bot, room: str) -> None:
    reply = await put(ann, room, PNG, described(PNG, "picture.png"))
    file = Attachment(**reply.json()["data"])
    assert (reply.status_code, file.content_type) == (201, "image/png")

    sent = (await ann.rest.human_api_messages.send_my_chat_message(room, message=attached(file.id, to=bot))).data

    (row,) = (await bot.rest.agent_api_context.get_agent_chat_context(room)).data
    assert (row.id, row.attachments) == (sent.id, [file])
    assert await download(bot, room, file.id) == PNG
    assert (await get(ann, room, file.id, "bytes=1-3")).content == b"PNG"


async def test_who_may_only_read_a_room_may_only_read_its_files(ann: Person, bot: Bot) -> None:
    agents = await bot.open_room()
    file = await upload(bot, agents, TEXT)
    assert (await get(ann, agents, file.id)).content == TEXT
    assert refused_raw(await put(ann, agents, PNG)) == raw(NOT_FOUND)


async def test_a_message_shows_what_is_attached_everywhere(ann: Person, bot: Bot, room: str, cast: Cast) -> None:
    reader = await cast.bot(ann)
    await ann.add(room, reader)
    files = [await upload(bot, room, content, name) for content, name in ((TEXT, "song.txt"), (PNG, "dot.png"))]
    message = attached(*(file.id for file in files), to=reader)
    sent = (await bot.rest.agent_api_messages.create_agent_chat_message(room, message=message)).data

    (inbox,) = (await reader.rest.agent_api_messages.list_agent_messages(room)).data
    rows = [inbox, await reader.next(room), await ann.message(room, sent.id)]
    rows += (await bot.rest.agent_api_context.get_agent_chat_context(room)).data
    for row in rows:
        assert [file.id for file in row.attachments] == [file.id for file in files]
        assert row.attachments == files


async def test_only_files_of_the_room_can_be_attached(ann: Person, bot: Bot, room: str) -> None:
    here = await upload(bot, room, TEXT)
    elsewhere = await upload(bot, await ann.open_room(bot), TEXT)
    send = bot.rest.agent_api_messages.create_agent_chat_message
    for files in ([elsewhere.id], [UNKNOWN_ID], [here.id, elsewhere.id]):
        assert await refused(send, room, message=attached(*files, to=ann)) == unprocessable("unknown_attachment")
    refusal = await refused(send, room, message=attached(*[here.id] * 11, to=ann))
    assert refusal.status == 422
    for wrong in (None, "text", ["not-an-id"]):
        body = {"message": {"content": "See there", "mentions": [{"id": ann.id}], "attachment_ids": wrong}}
        assert (await bot.raw.post(f"/api/v1/agent/chats/{room}/messages", json=body)).status_code == 422
    assert await ann.texts(room) == [], "nothing was written"


async def test_ten_files_are_enough(ann: Person, bot: Bot, room: str) -> None:
    files = [await upload(bot, room, f"number {number}".encode(), f"{number}.txt") for number in range(10)]
    message = attached(*(file.id for file in files), to=ann)
    sent = (await bot.rest.agent_api_messages.create_agent_chat_message(room, message=message)).data
    assert [file.name for file in (await ann.message(room, sent.id)).attachments] == [file.name for file in files]


async def test_many_uploads_of_the_same_bytes_are_one_file(bot: Bot, room: str) -> None:
    replies = await asyncio.gather(*(put(bot, room, TEXT) for _ in range(8)))
    assert sorted(reply.status_code for reply in replies) == [200] * 7 + [201]
    assert len({reply.json()["data"]["id"] for reply in replies}) == 1


async def test_a_room_that_is_gone_takes_its_files_along(ann: Person, bot: Bot, room: str) -> None:
    file = await upload(bot, room, TEXT)
    assert (await ann.raw.delete(f"/api/v1/me/chats/{room}")).is_success
    assert await download_refused(bot, room, file.id) == NOT_FOUND
    assert refused_raw(await get(ann, room, file.id)) == raw(NOT_FOUND)


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[Server]:
    """A server that takes little, and keeps it for a day."""
    flags = ("--file-bytes", "64KiB", "--file-types", "text/,image/png", "--file-retention", "24h")
    server = Server(tmp_path, *flags).start()
    yield server
    server.close()


async def test_what_a_server_does_not_take(strict: Server) -> None:
    async with Cast(strict) as cast:
        ann = await cast.person()
        bot = await cast.bot(ann)
        room = await ann.open_room(bot)

        kept = await upload(bot, room, bytes(range(32, 127)) * 600)
        assert kept.expires_at is not None and await download(bot, room, kept.id, request_options=NO_RETRY)
        too_long = b"x" * (64 * 1024 + 1)
        upload_method: Callable[..., Any] = bot.rest.agent_api_files.upload_agent_chat_file
        refusal = await refused(upload_method, room, request=too_long, request_options=options(too_long))
        assert (refusal.error, refusal.status) == ("ContentTooLargeError", 413)
        pdf = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
        refusal = await refused(upload_method, room, request=pdf, request_options=options(pdf))
        assert (refusal.error, refusal.status) == ("UnprocessableEntityError", 422)
