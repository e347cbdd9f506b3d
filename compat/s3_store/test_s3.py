"""Files in a bucket of an S3-compatible store (moto), seen from both ends: through the API and in the bucket itself."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import boto3
import pytest
from band_rest.types import ChatMessageRequest
from moto.server import ThreadedMotoServer

from harness.cast import Bot, Cast, Person, mention
from harness.files import PNG, described, download, get, options, put, upload
from harness.refusals import refused, refused_raw
from harness.server import Server
from harness.waiting import eventually

BUCKET = "bandstand-files"
KEY_ID, SECRET, REGION = "compat", "compat-secret", "us-east-1"
TEXT = "Drei Chinesen mit dem Kontrabaß\n".encode()
# More than one part of a multi-part upload.
LONG = os.urandom(1 << 20) * 12


class Store:
    """An S3-compatible store with one bucket; what it holds outlives its being down."""

    def __init__(self) -> None:
        self._port = 0
        self.start()
        self.client = boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
        )
        self.client.create_bucket(Bucket=BUCKET)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self._port, verbose=False)
        self._server.start()
        _, self._port = self._server.get_host_and_port()

    def stop(self) -> None:
        self._server.stop()

    def objects(self) -> dict[str, bytes]:
        """What is in the bucket."""
        found = {}
        for one in self.client.list_objects_v2(Bucket=BUCKET).get("Contents", []):
            # What is removed at this very moment is not there.
            with suppress(self.client.exceptions.NoSuchKey):
                found[one["Key"]] = self.client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read()
        return found

    def remove(self, key: str) -> None:
        self.client.delete_object(Bucket=BUCKET, Key=key)


@pytest.fixture(scope="session")
def store() -> Iterator[Store]:
    store = Store()
    yield store
    store.stop()


@dataclass(frozen=True)
class Stage:
    """A server that keeps its files in the bucket, with Ann, her agent and their room."""

    server: Server
    store: Store
    cast: Cast
    ann: Person
    bot: Bot
    room: str

    async def objects(self) -> dict[str, bytes]:
        # In a thread, so that the server can be answered meanwhile.
        return await asyncio.to_thread(self.store.objects)


@pytest.fixture
async def stage(store: Store, tmp_path: Path) -> AsyncIterator[Stage]:
    flags = ("--files-bucket", BUCKET, "--files-endpoint", store.url, "--files-region", REGION)
    keys = {"BANDSTAND_S3_ACCESS_KEY_ID": KEY_ID, "BANDSTAND_S3_SECRET_ACCESS_KEY": SECRET}
    server = Server(tmp_path, *flags, environment=keys).start()
    async with Cast(server) as cast:
        ann = await cast.person()
        bot = await cast.bot(ann, "Writer")
        yield Stage(server, store, cast, ann, bot, await ann.open_room(bot))
    server.close()
    for key in store.objects():
        store.remove(key)


@pytest.mark.parametrize("content", [b"", TEXT, PNG, LONG], ids=["empty", "text", "image", "long"])
async def test_what_is_uploaded_is_in_the_bucket_and_comes_back(stage: Stage, content: bytes) -> None:
    file = await upload(stage.bot, stage.room, content, "some.bin")

    assert (file.bytes, file.sha_256) == (len(content), hashlib.sha256(content).hexdigest())
    assert await download(stage.bot, stage.room, file.id) == content
    assert list((await stage.objects()).values()) == [content]
    # And nowhere else.
    assert not [path for path in stage.server.data.rglob("*") if path.is_file() and path.read_bytes() == content != b""]


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=5-9", slice(5, 10)),
        ("bytes=10-", slice(10, None)),
        ("bytes=-7", slice(-7, None)),
    ],
)
async def test_a_part_is_asked_of_the_store(stage: Stage, span: str, expected: slice) -> None:
    file = await upload(stage.bot, stage.room, TEXT)
    reply = await get(stage.ann, stage.room, file.id, span)
    assert (reply.status_code, reply.content) == (206, TEXT[expected])
    assert await download(stage.bot, stage.room, file.id, range=span) == TEXT[expected]
    assert (await get(stage.bot, stage.room, file.id, f"bytes={len(TEXT)}-")).status_code == 416


async def test_a_part_of_a_long_file(stage: Stage) -> None:
    file = await upload(stage.bot, stage.room, LONG)
    middle = len(LONG) // 2
    reply = await get(stage.bot, stage.room, file.id, f"bytes={middle}-{middle + 99_999}")
    assert reply.content == LONG[middle : middle + 100_000]


async def test_equal_bytes_are_one_object_in_a_room(stage: Stage) -> None:
    replies = [await put(who, stage.room, TEXT) for who in (stage.bot, stage.ann, stage.bot)]
    assert [reply.status_code for reply in replies] == [201, 200, 200]
    assert len({reply.json()["data"]["id"] for reply in replies}) == 1
    assert list((await stage.objects()).values()) == [TEXT]

    at_once = await asyncio.gather(*(put(stage.bot, stage.room, PNG) for _ in range(4)))
    assert sorted(reply.status_code for reply in at_once) == [200, 200, 200, 201]
    assert sorted((await stage.objects()).values()) == sorted([TEXT, PNG])

    elsewhere = await stage.ann.open_room(stage.bot)
    assert (await put(stage.bot, elsewhere, TEXT)).status_code == 201
    assert len(await stage.objects()) == 3


async def test_what_is_refused_leaves_nothing_behind(stage: Stage) -> None:
    reply = await put(stage.bot, stage.room, TEXT, {**described(TEXT), "x-file-sha256": "0" * 64})
    assert reply.status_code == 422
    assert await stage.objects() == {}


async def test_a_name_is_no_part_of_a_key(stage: Stage) -> None:
    await put(stage.bot, stage.room, TEXT, described(TEXT, "../../secret/song.txt"))
    (key,) = await stage.objects()
    assert ".." not in key and "song" not in key


async def test_attachments_outlive_a_restart(stage: Stage) -> None:
    file = await upload(stage.bot, stage.room, PNG, "dot.png")
    message = ChatMessageRequest(content="Look", mentions=[mention(stage.ann)], attachment_ids=[file.id])
    await stage.bot.rest.agent_api_messages.create_agent_chat_message(stage.room, message=message)

    await asyncio.to_thread(stage.server.restart)

    (row,) = await stage.ann.messages(stage.room)
    assert row.attachments == [file]
    assert await download(stage.bot, stage.room, file.id) == PNG


async def test_the_files_of_a_deleted_room_leave_the_bucket(stage: Stage) -> None:
    kept = await stage.ann.open_room(stage.bot)
    await upload(stage.bot, kept, PNG)
    await upload(stage.bot, stage.room, TEXT)
    assert (await stage.ann.raw.delete(f"/api/v1/me/chats/{stage.room}")).is_success

    # The job that tidies up runs at the start, and from time to time.
    await asyncio.to_thread(stage.server.restart)

    async def tidied() -> bool:
        return list((await stage.objects()).values()) == [PNG]

    await eventually(tidied, what="only the other room's file is left")


async def test_an_object_that_is_gone_is_an_outage_and_no_crash(stage: Stage) -> None:
    file = await upload(stage.bot, stage.room, TEXT)
    (key,) = await stage.objects()
    stage.store.remove(key)
    refusal = refused_raw(await get(stage.bot, stage.room, file.id))
    assert refusal.status in (404, 503)
    # All else works on.
    await stage.bot.say(stage.room, "It is gone", stage.ann)
    assert (await put(stage.bot, stage.room, PNG)).status_code == 201


async def test_a_store_that_is_down_is_an_outage_until_it_is_back(stage: Stage) -> None:
    file = await upload(stage.bot, stage.room, TEXT)
    stage.store.stop()
    try:
        for reply in (await get(stage.bot, stage.room, file.id), await put(stage.bot, stage.room, PNG)):
            refusal = refused_raw(reply)
            assert (refusal.status, refusal.code) == (503, "unavailable")
        upload_method = stage.bot.rest.agent_api_files.upload_agent_chat_file
        refusal = await refused(upload_method, stage.room, request=PNG, request_options=options(PNG))
        assert (refusal.error, refusal.status) == ("ServiceUnavailableError", 503)
        await stage.bot.say(stage.room, "All else works on", stage.ann)
    finally:
        stage.store.start()
    assert await download(stage.bot, stage.room, file.id) == TEXT
    assert (await put(stage.bot, stage.room, PNG)).status_code == 201
