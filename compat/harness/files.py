"""Putting files into rooms and getting them back, with the generated client and without one."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
from band_rest.core.request_options import RequestOptions
from band_rest.types import Attachment

from harness.cast import Bot, Identity, Person
from harness.refusals import NO_RETRY

PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89"
    b"\x00\x00\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\r\xefF\xb8\x00\x00\x00\x00IEND\xaeB`\x82"
)


def described(content: bytes, name: str = "notes.txt", content_type: str | None = None) -> dict[str, str]:
    """The headers of an upload."""
    headers = {"x-file-name": name, "x-file-sha256": hashlib.sha256(content).hexdigest()}
    return headers if content_type is None else {**headers, "content-type": content_type}


def options(content: bytes, name: str = "notes.txt", content_type: str | None = None) -> RequestOptions:
    return {"additional_headers": described(content, name, content_type), **NO_RETRY}


async def upload(
    bot: Bot, room: str, content: bytes, name: str = "notes.txt", content_type: str | None = None
) -> Attachment:
    made = await bot.rest.agent_api_files.upload_agent_chat_file(
        room, request=content, request_options=options(content, name, content_type)
    )
    return made.data


async def download(bot: Bot, room: str, file: str, **options: Any) -> bytes:
    """The bytes of a file, or of the `range` of it."""
    return b"".join([chunk async for chunk in bot.rest.agent_api_files.download_agent_chat_file(room, file, **options)])


def place(who: Identity, room: str, file: str | None = None) -> str:
    side = "me" if isinstance(who, Person) else "agent"
    return f"/api/v1/{side}/chats/{room}/files" + ("" if file is None else f"/{file}")


async def put(who: Identity, room: str, content: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
    """An upload without a client; its description is right unless another one is given."""
    headers = described(content) if headers is None else headers
    return await who.raw.put(place(who, room), content=content, headers=headers)


async def get(who: Identity, room: str, file: str, span: str | None = None) -> httpx.Response:
    return await who.raw.get(place(who, room, file), headers={} if span is None else {"range": span})
