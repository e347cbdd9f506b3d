"""Who may call what: every method of the generated clients, with no key, a dead key, the wrong kind of key, and a room
that is not the caller's."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from band_rest import AsyncRestClient
from band_rest.agent_api_chats.types import RenameAgentChatRequestChat
from band_rest.human_api_chats.types import CreateMyChatRoomRequestChat
from band_rest.human_api_profile.types import UpdateMyProfileRequestUser
from band_rest.types import (
    AgentRegisterRequest,
    ChatEventRequest,
    ChatMessageRequest,
    ChatRoomRequest,
    ParticipantRequest,
)

from harness.cast import UNKNOWN_ID, Bot, Cast, Person
from harness.contacts import wish
from harness.files import described
from harness.memories import memory
from harness.refusals import FORBIDDEN, NOT_FOUND, UNAUTHORIZED, raw, refused, refused_raw, untyped
from harness.server import Server

SOMEBODY = ParticipantRequest(participant_id=UNKNOWN_ID)
SOMETHING = ChatMessageRequest(content="hello", mentions=[{"id": UNKNOWN_ID}])

FILE = b"a file"
UPLOAD = {"additional_headers": described(FILE)}

Arguments = Callable[[str], dict[str, Any]]

# Every operation: the client's method, and arguments that are in order but for the room.
AGENT_ROOM_CALLS: dict[str, Arguments] = {
    "agent_api_chats.get_agent_chat": lambda room: {"id": room},
    "agent_api_chats.rename_agent_chat": lambda room: {"id": room, "chat": RenameAgentChatRequestChat(title="Plans")},
    "agent_api_participants.list_agent_chat_participants": lambda room: {"chat_id": room},
    "agent_api_participants.add_agent_chat_participant": lambda room: {"chat_id": room, "participant": SOMEBODY},
    "agent_api_participants.remove_agent_chat_participant": lambda room: {"chat_id": room, "id": UNKNOWN_ID},
    "agent_api_messages.list_agent_messages": lambda room: {"chat_id": room},
    "agent_api_messages.create_agent_chat_message": lambda room: {"chat_id": room, "message": SOMETHING},
    "agent_api_messages.get_agent_next_message": lambda room: {"chat_id": room},
    "agent_api_messages.mark_agent_message_processing": lambda room: {"chat_id": room, "id": UNKNOWN_ID},
    "agent_api_messages.mark_agent_message_processed": lambda room: {"chat_id": room, "id": UNKNOWN_ID},
    "agent_api_messages.mark_agent_message_failed": lambda room: {"chat_id": room, "id": UNKNOWN_ID, "error": "no"},
    "agent_api_events.create_agent_chat_event": lambda room: {
        "chat_id": room,
        "event": ChatEventRequest(content="thinking", message_type="thought"),
    },
    "agent_api_context.get_agent_chat_context": lambda room: {"chat_id": room},
    "agent_api_activity.report_agent_chat_activity": lambda room: {"chat_id": room, "working": True},
    "agent_api_chat_tasks.list_chat_tasks": lambda room: {"chat_id": room},
    "agent_api_chat_tasks.create_chat_task": lambda room: {"chat_id": room, "subject": "Paint the door"},
    "agent_api_chat_tasks.get_chat_task": lambda room: {"chat_id": room, "id": "1"},
    "agent_api_chat_tasks.update_chat_task": lambda room: {"chat_id": room, "id": "1", "comment": "hello"},
    "agent_api_chat_tasks.get_chat_task_history": lambda room: {"chat_id": room, "id": "1"},
    "agent_api_chat_tasks.get_chat_board": lambda room: {"chat_id": room},
    "agent_api_chat_tasks.put_chat_board": lambda room: {"chat_id": room, "goal_title": "Ship it"},
    "agent_api_files.upload_agent_chat_file": lambda room: {
        "chat_id": room,
        "request": FILE,
        "request_options": UPLOAD,
    },
    "agent_api_files.download_agent_chat_file": lambda room: {"chat_id": room, "id": UNKNOWN_ID},
}
AGENT_CALLS: dict[str, Arguments] = {
    "agent_api_identity.get_agent_me": lambda _: {},
    "agent_api_peers.list_agent_peers": lambda _: {},
    "agent_api_chats.list_agent_chats": lambda _: {},
    "agent_api_chats.create_agent_chat": lambda _: {"chat": ChatRoomRequest()},
    "agent_api_contacts.list_agent_contacts": lambda _: {},
    "agent_api_contacts.add_agent_contact": lambda _: {"handle": "nobody"},
    "agent_api_contacts.remove_agent_contact": lambda _: {"handle": "nobody"},
    "agent_api_contacts.list_agent_contact_requests": lambda _: {},
    "agent_api_contacts.respond_to_agent_contact_request": lambda _: {"action": "approve", "handle": "nobody"},
    "agent_api_memories.list_agent_memories": lambda _: {},
    "agent_api_memories.create_agent_memory": lambda _: {"memory": memory()},
    "agent_api_memories.get_agent_memory": lambda _: {"id": UNKNOWN_ID},
    "agent_api_memories.supersede_agent_memory": lambda _: {"id": UNKNOWN_ID},
    "agent_api_memories.archive_agent_memory": lambda _: {"id": UNKNOWN_ID},
    **AGENT_ROOM_CALLS,
}
HUMAN_ROOM_CALLS: dict[str, Arguments] = {
    "human_api_chats.get_my_chat_room": lambda room: {"id": room},
    "human_api_participants.list_my_chat_participants": lambda room: {"chat_id": room},
    "human_api_participants.add_my_chat_participant": lambda room: {"chat_id": room, "participant": SOMEBODY},
    "human_api_participants.remove_my_chat_participant": lambda room: {"chat_id": room, "id": UNKNOWN_ID},
    "human_api_messages.list_my_chat_messages": lambda room: {"chat_id": room},
    "human_api_messages.send_my_chat_message": lambda room: {"chat_id": room, "message": SOMETHING},
}
HUMAN_CALLS: dict[str, Arguments] = {
    "human_api_profile.get_my_profile": lambda _: {},
    "human_api_profile.update_my_profile": lambda _: {"user": UpdateMyProfileRequestUser(first_name="Ann")},
    "human_api_agents.list_my_agents": lambda _: {},
    "human_api_agents.register_my_agent": lambda _: {
        "agent": AgentRegisterRequest(name="Never", description="An agent that is never registered")
    },
    "human_api_agents.delete_my_agent": lambda _: {"id": UNKNOWN_ID},
    "human_api_peers.list_my_peers": lambda _: {},
    "human_api_chats.list_my_chats": lambda _: {},
    "human_api_chats.create_my_chat_room": lambda _: {"chat": CreateMyChatRoomRequestChat()},
    "human_api_contacts.list_my_contacts": lambda _: {},
    "human_api_contacts.remove_my_contact": lambda _: {"handle": "nobody"},
    "human_api_contacts.resolve_handle": lambda _: {"handle": "nobody"},
    "human_api_contacts.list_received_contact_requests": lambda _: {},
    "human_api_contacts.list_sent_contact_requests": lambda _: {},
    "human_api_contacts.create_contact_request": lambda _: {"contact_request": wish("nobody")},
    "human_api_contacts.approve_contact_request": lambda _: {"id": UNKNOWN_ID},
    "human_api_contacts.reject_contact_request": lambda _: {"id": UNKNOWN_ID},
    "human_api_contacts.cancel_contact_request": lambda _: {"id": UNKNOWN_ID},
    "human_api_memories.list_user_memories": lambda _: {},
    "human_api_memories.get_user_memory": lambda _: {"id": UNKNOWN_ID},
    "human_api_memories.supersede_user_memory": lambda _: {"id": UNKNOWN_ID},
    "human_api_memories.archive_user_memory": lambda _: {"id": UNKNOWN_ID},
    "human_api_memories.restore_user_memory": lambda _: {"id": UNKNOWN_ID},
    "human_api_memories.delete_user_memory": lambda _: {"id": UNKNOWN_ID},
    "human_api_bulk_deletions.bulk_delete_my_agents": lambda _: {"ids": [UNKNOWN_ID]},
    "human_api_bulk_deletions.bulk_delete_my_chats": lambda _: {"ids": [UNKNOWN_ID]},
    "human_api_bulk_deletions.show_my_bulk_deletion": lambda _: {"id": UNKNOWN_ID},
    **HUMAN_ROOM_CALLS,
}
# Not served, by choice, whoever asks (test_delegation.py).
ABSENT = {"agent_api_delegation.exchange_delegated_token"}
ROOM_CALLS = AGENT_ROOM_CALLS | HUMAN_ROOM_CALLS
ALL_CALLS = AGENT_CALLS | HUMAN_CALLS


def method(rest: AsyncRestClient, name: str) -> Callable[..., Any]:
    group, function = name.split(".")
    found = getattr(getattr(rest, group), function)
    if not inspect.isasyncgenfunction(found):
        return found

    async def collected(**arguments: Any) -> bytes:
        return b"".join([chunk async for chunk in found(**arguments)])

    return collected


def test_no_method_of_the_client_is_forgotten(server: Server) -> None:
    client = AsyncRestClient(base_url=server.url, api_key="none")
    groups = [name for name in dir(client) if name.startswith(("agent_api_", "human_api_"))]
    methods = {
        f"{group}.{name}"
        for group in groups
        for name in dir(getattr(client, group))
        if not name.startswith("_") and name != "with_raw_response"
    }
    assert len(methods) == 70
    assert methods == ALL_CALLS.keys() | ABSENT


@pytest.mark.parametrize("name", ALL_CALLS)
async def test_an_unknown_key_opens_nothing(cast: Cast, name: str) -> None:
    for api_key in ("band_a_" + "0" * 43, "band_u_" + "0" * 43, "nonsense"):
        stranger = await cast.rest(api_key)
        assert await refused(method(stranger, name), **ALL_CALLS[name](UNKNOWN_ID)) == UNAUTHORIZED


@pytest.mark.parametrize("path", ["/api/v1/agent/me", "/api/v1/me/profile"])
async def test_a_request_without_a_key_is_refused(server: Server, path: str) -> None:
    async with httpx.AsyncClient(base_url=server.url) as nobody:
        assert refused_raw(await nobody.get(path)) == raw(UNAUTHORIZED)
        assert refused_raw(await nobody.get(path, headers={"x-api-key": ""})) == raw(UNAUTHORIZED)


async def test_a_revoked_key_opens_nothing_any_more(server: Server, ann: Person, bot: Bot) -> None:
    await asyncio.to_thread(server.command, "key", "revoke", bot.handle)
    assert await refused(bot.rest.agent_api_identity.get_agent_me) == UNAUTHORIZED
    await asyncio.to_thread(server.command, "key", "revoke", ann.handle)
    assert await refused(ann.rest.human_api_profile.get_my_profile) == UNAUTHORIZED


@pytest.mark.parametrize("name", AGENT_CALLS)
async def test_a_person_may_not_act_as_an_agent(ann: Person, name: str) -> None:
    refusal = await refused(method(ann.rest, name), **AGENT_CALLS[name](UNKNOWN_ID))
    # Not every method of the client declares it.
    assert refusal in (FORBIDDEN, untyped(FORBIDDEN))


@pytest.mark.parametrize("name", HUMAN_CALLS)
async def test_an_agent_may_not_act_as_a_person(bot: Bot, name: str) -> None:
    assert await refused(method(bot.rest, name), **HUMAN_CALLS[name](UNKNOWN_ID)) == FORBIDDEN


@pytest.mark.parametrize("name", ROOM_CALLS)
async def test_a_strangers_room_looks_like_no_room_at_all(cast: Cast, ann: Person, bot: Bot, name: str) -> None:
    stranger = await cast.person("stranger")
    strangers_room = await stranger.open_room(await cast.bot(stranger))
    caller = bot if name in AGENT_ROOM_CALLS else ann

    answers = [
        await refused(method(caller.rest, name), **ROOM_CALLS[name](room))
        for room in (strangers_room, UNKNOWN_ID, "not-a-room")
    ]

    assert answers == [NOT_FOUND] * 3
    assert len({answer.message for answer in answers}) == 1, "the text tells which of the rooms exists"


async def test_the_header_name_has_no_case_and_client_headers_are_ignored(server: Server, bot: Bot) -> None:
    headers = {"X-Api-Key": bot.api_key, "X-Fern-Language": "Python", "User-Agent": "band-client-rest/0.0.46"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers) as client:
        assert (await client.get("/api/v1/agent/me")).json()["data"]["id"] == bot.id


async def test_a_body_that_is_not_json_is_a_bad_request(bot: Bot) -> None:
    reply = await bot.raw.post("/api/v1/agent/chats", content='{"chat":', headers={"content-type": "application/json"})
    refusal = refused_raw(reply)
    assert (refusal.status, refusal.code) == (400, "bad_request")


async def test_what_the_contract_does_not_name_is_refused_by_name(ann: Person, bot: Bot) -> None:
    unknown_property = refused_raw(await bot.raw.post("/api/v1/agent/chats", json={"chat": {"colour": "red"}}))
    assert (unknown_property.status, unknown_property.code) == (422, "validation_error")
    assert unknown_property.names("/chat/colour")

    unknown_parameter = refused_raw(await ann.raw.get("/api/v1/me/chats", params={"colour": "red"}))
    assert (unknown_parameter.status, unknown_parameter.code) == (422, "validation_error")
    assert unknown_parameter.names("/colour")

    wrong_type = refused_raw(await bot.raw.post("/api/v1/agent/chats", json={"chat": ["red"]}))
    assert (wrong_type.status, wrong_type.code) == (422, "validation_error")
    assert wrong_type.names("/chat")


async def test_other_methods_and_other_paths_are_refused_in_the_same_envelope(bot: Bot) -> None:
    assert refused_raw(await bot.raw.delete("/api/v1/agent/me")).status == 405
    assert refused_raw(await bot.raw.get("/api/v1/agent/nothing")).status == 404


async def test_the_credential_check_of_n8n_passes(bot: Bot) -> None:
    reply = await bot.raw.get("/api/v1/test")
    assert (reply.status_code, reply.json()) == (200, {"status": "ok"})
