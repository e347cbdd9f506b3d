"""People with a token: the generated client's own `async_token`, renewed by the key, until the key is revoked."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from band_rest.core.client_wrapper import AsyncClientWrapper
from band_rest.human_api_profile.client import AsyncHumanApiProfileClient
from band_rest.errors import UnauthorizedError

from harness.cast import TLS, Bot, Person
from harness.server import Server


async def token_of(server: Server, person: Person) -> str:
    async with httpx.AsyncClient(verify=TLS) as client:
        reply = await client.post(f"{server.url}/api/v1/sign-in", headers={"x-api-key": person.api_key})
    assert reply.status_code == 200, reply.text
    return reply.json()["data"]["access_token"]


async def test_the_generated_client_works_with_a_token_until_its_key_is_revoked(
    server: Server, ann: Person, bot: Bot
) -> None:
    async def token() -> str:
        return current

    current = await token_of(server, ann)
    async with httpx.AsyncClient(verify=TLS) as client:
        # The client always sends a key as well, whatever it is.
        wrapper = AsyncClientWrapper(api_key="none", base_url=server.url, async_token=token, httpx_client=client)
        profile = AsyncHumanApiProfileClient(client_wrapper=wrapper)
        assert (await profile.get_my_profile()).data.id == ann.id

        genuine, current = current, current[:-2]
        with pytest.raises(UnauthorizedError):
            await profile.get_my_profile()

        current = genuine
        await asyncio.to_thread(server.command, "key", "revoke", ann.id)
        with pytest.raises(UnauthorizedError):
            await profile.get_my_profile()


async def test_an_agents_key_gets_no_token(server: Server, bot: Bot) -> None:
    async with httpx.AsyncClient(verify=TLS) as client:
        reply = await client.post(f"{server.url}/api/v1/sign-in", headers={"x-api-key": bot.api_key})
    assert reply.status_code == 403, reply.text
