"""Files in a bucket of an S3-compatible store (moto), seen from both ends: through the API and in the bucket itself."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from band_rest.types import ChatMessageRequest
from moto.server import ThreadedMotoServer

from harness.cast import Bot, Cast, Person, mention
from harness.files import PNG, described, download, get, put, upload
from harness.refusals import refused_raw
from harness.server import Server
from harness.waiting import eventually

BUCKET = "bandstand-files"
KEY_ID, SECRET, REGION = "compat", "compat-secret", "us-east-1"
TEXT = "Drei Chinesen mit dem Kontrabaß\n".encode()
# More than one part of a multi-part upload.
LONG = os.urandom(1 << 20) * 12


@pytest.fixture(scope="session")
def store() -> Iterator[Any]:
    """A client of a running store that holds the bucket."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        region_name=REGION,
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket=BUCKET)
    yield client
    server.stop()


@dataclass(frozen=True)
class Stage:
    """A server that keeps its files in the bucket, with Ann, her agent and their room."""

    server: Server
    store: Any
    cast: Cast
    ann: Person
    bot: Bot
    room: str

    def objects(self) -> dict[str, bytes]:
        """What is in the bucket."""
        listed = self.store.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {one["Key"]: self.store.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read() for one in listed}


@pytest.fixture
async def stage(store: Any, tmp_path: Path) -> AsyncIterator[Stage]:
    options = ("--files-bucket", BUCKET, "--files-endpoint", store.meta.endpoint_url, "--files-region", REGION)
    keys = {"BANDSTAND_S3_ACCESS_KEY_ID": KEY_ID, "BANDSTAND_S3_SECRET_ACCESS_KEY": SECRET}
    server = Server(tmp_path, *options, environment=keys).start()
    async with Cast(server) as cast:
        ann = await cast.person()
        bot = await cast.bot(ann, "Writer")
        yield Stage(server, store, cast, ann, bot, await ann.open_room(bot))
    server.close()
    for key in store.list_objects_v2(Bucket=BUCKET).get("Contents", []):
        store.delete_object(Bucket=BUCKET, Key=key["Key"])


@pytest.mark.parametrize("content", [b"", TEXT, PNG, LONG], ids=["empty", "text", "image", "long"])
async def test_what_is_uploaded_is_in_the_bucket_and_comes_back(stage: Stage, content: bytes) -> None:
    file = await upload(stage.bot, stage.room, content, "some.bin")

    assert (file.bytes, file.sha_256) == (len(content), hashlib.sha256(content).hexdigest())
    assert await download(stage.bot, stage.room, file.id) == content
    assert list((await asyncio.to_thread(stage.objects)).values()) == [content]
    # And nowhere else.
    assert not [path for path in stage.server.data.rglob("*") if path.is_file() and path.read_bytes() == content != b""]


@pytest.mark.parametrize(
    ("span", "expected"),
    [("bytes=0-0", slice(0, 1)), ("bytes=5-9", slice(5, 10)), ("bytes=10-", slice(10, None)), ("bytes=-7", slice(-7, None))],
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
    assert list((await asyncio.to_thread(stage.objects)).values()) == [TEXT]

    at_once = await asyncio.gather(*(put(stage.bot, stage.room, PNG) for _ in range(4)))
    assert sorted(reply.status_code for reply in at_once) == [200, 200, 200, 201]
    assert sorted((await asyncio.to_thread(stage.objects)).values()) == sorted([TEXT, PNG])

    elsewhere = await stage.ann.open_room(stage.bot)
    assert (await put(stage.bot, elsewhere, TEXT)).status_code == 201
    assert len(await asyncio.to_thread(stage.objects)) == 3


async def test_what_is_refused_leaves_nothing_behind(stage: Stage) -> None:
    reply = await put(stage.bot, stage.room, TEXT, {**described(TEXT), "x-file-sha256": "0" * 64})
    assert reply.status_code == 422
    assert await asyncio.to_thread(stage.objects) == {}


async def test_a_name_is_no_part_of_a_key(stage: Stage) -> None:
    await put(stage.bot, stage.room, TEXT, described(TEXT, "../../secret/song.txt"))
    (key,) = await asyncio.to_thread(stage.objects)
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
        return list((await asyncio.to_thread(stage.objects)).values()) == [PNG]

    await eventually(tidied, what="only the other room's file is left")


async def test_an_object_that_is_gone_is_an_outage_and_no_crash(stage: Stage) -> None:
    file = await upload(stage.bot, stage.room, TEXT)
    (key,) = await asyncio.to_thread(stage.objects)
    stage.store.delete_object(Bucket=BUCKET, Key=key)
    refusal = refused_raw(await get(stage.bot, stage.room, file.id))
    assert refusal.status in (404, 503)
    # All else works on.
    await stage.bot.say(stage.room, "It is gone", stage.ann)
    assert (await put(stage.bot, stage.room, PNG)).status_code == 201
