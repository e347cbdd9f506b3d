"""Who acts in a test: people and agents with their keys, each with the generated client and a raw one."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import httpx
from band_rest import AsyncRestClient
from band_rest.human_api_chats.types import CreateMyChatRoomRequestChat
from band_rest.types import (
    AgentRegisterRequest,
    ChatMessage,
    ChatMessageRequest,
    ChatMessageRequestMentionsItem,
    ChatRoomRequest,
    MessageSentResponse,
    ParticipantRequest,
)

from harness.server import Server
from harness.waiting import eventually

# Made once: each client would load all certificate authorities anew, to speak to a server without TLS.
TLS = ssl.create_default_context()
UNKNOWN_ID = "00000000-0000-4000-8000-000000000000"
DESCRIPTION = "A scripted agent of the compatibility suite"


def mention(who: Identity, kind: str | None = None) -> ChatMessageRequestMentionsItem:
    """A mention by id alone, as the common callers send it."""
    given = {"id": who.id} if kind is None else {"id": who.id, "kind": kind}
    return ChatMessageRequestMentionsItem(**given)


def message(content: str, *mentioned: Identity) -> ChatMessageRequest:
    return ChatMessageRequest(content=content, mentions=[mention(who) for who in mentioned])


def token(who: Identity) -> str:
    """How a mention stands in stored text."""
    return f"@[[{who.id}]]"


def delivery_of(row: ChatMessage, recipient: Identity) -> dict[str, Any] | None:
    """What became of a message for one recipient; None as long as nothing has happened."""
    metadata = row.metadata.model_dump() if row.metadata else {}
    return (metadata.get("delivery_status") or {}).get(recipient.id)


@dataclass(frozen=True)
class Identity:
    id: str
    name: str
    handle: str
    api_key: str
    rest: AsyncRestClient
    # For what the generated clients cannot express: other methods, malformed bodies, repeated query keys.
    raw: httpx.AsyncClient


@dataclass(frozen=True)
class Bot(Identity):
    """An agent, as its own program sees itself."""

    async def open_room(self, *others: Identity, title: str | None = None) -> str:
        """A room that this agent owns."""
        chat = ChatRoomRequest() if title is None else ChatRoomRequest(title=title)
        room = (await self.rest.agent_api_chats.create_agent_chat(chat=chat)).data.id
        for other in others:
            await self.add(room, other)
        return room

    async def add(self, room: str, other: Identity, role: str = "member") -> None:
        await self.rest.agent_api_participants.add_agent_chat_participant(
            room, participant=ParticipantRequest(participant_id=other.id, role=role)
        )

    async def say(self, room: str, content: str, *mentioned: Identity) -> MessageSentResponse:
        sent = await self.rest.agent_api_messages.create_agent_chat_message(room, message=message(content, *mentioned))
        return sent.data

    async def next(self, room: str) -> ChatMessage | None:
        reply = await self.rest.agent_api_messages.get_agent_next_message(room)
        return reply.data if reply else None


@dataclass(frozen=True)
class Person(Identity):
    """A user, with what a person's client does all day."""

    async def register(self, name: str, description: str = DESCRIPTION) -> tuple[str, str]:
        """Registers an agent; its id and key."""
        made = await self.rest.human_api_agents.register_my_agent(
            agent=AgentRegisterRequest(name=name, description=description)
        )
        return made.data.agent.id, made.data.credentials.api_key

    async def open_room(self, *others: Identity, title: str | None = None) -> str:
        """A room that this person owns."""
        chat = CreateMyChatRoomRequestChat() if title is None else CreateMyChatRoomRequestChat(title=title)
        room = (await self.rest.human_api_chats.create_my_chat_room(chat=chat)).data.id
        for other in others:
            await self.add(room, other)
        return room

    async def add(self, room: str, other: Identity, role: str = "member") -> None:
        await self.rest.human_api_participants.add_my_chat_participant(
            room, participant=ParticipantRequest(participant_id=other.id, role=role)
        )

    async def remove(self, room: str, other: Identity) -> None:
        await self.rest.human_api_participants.remove_my_chat_participant(room, other.id)

    async def say(self, room: str, content: str, *mentioned: Identity) -> MessageSentResponse:
        sent = await self.rest.human_api_messages.send_my_chat_message(room, message=message(content, *mentioned))
        return sent.data

    async def messages(self, room: str, **filters: Any) -> list[ChatMessage]:
        """The newest hundred rows of a room, oldest first."""
        page = await self.rest.human_api_messages.list_my_chat_messages(room, limit=100, **filters)
        return page.data[::-1]

    async def texts(self, room: str) -> list[tuple[str, str]]:
        """Who said what, oldest first, with mention tokens as they are stored."""
        return [(row.sender_id, row.content) for row in await self.messages(room, message_type="text")]

    async def message(self, room: str, message_id: str) -> ChatMessage:
        return next(row for row in await self.messages(room) if row.id == message_id)

    async def delivery(self, room: str, message_id: str, recipient: Identity) -> dict[str, Any] | None:
        return delivery_of(await self.message(room, message_id), recipient)

    async def settled(
        self, room: str, message_id: str, recipient: Identity, status: str, within: float = 15.0
    ) -> dict[str, Any]:
        """The delivery once it has reached a status."""

        async def reached() -> dict[str, Any] | None:
            delivery = await self.delivery(room, message_id, recipient)
            return delivery if delivery and delivery["status"] == status else None

        return await eventually(reached, what=f"{message_id} is {status} for {recipient.name}", within=within)


class Cast:
    """Makes the identities of one test against one server, and closes their clients afterwards."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._clients = AsyncExitStack()
        self._numbers = itertools.count(1)

    async def __aenter__(self) -> Cast:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._clients.aclose()

    async def organization(self, *members: Person) -> str:
        """A new organization of these people; its id."""
        name = f"Org {secrets.token_hex(4)}"
        return await asyncio.to_thread(self.server.add_organization, name, *(member.handle for member in members))

    async def owner(self) -> Person:
        """The server's owner."""
        return await self._person(self.server.owner_key)

    async def person(self, name: str = "ann") -> Person:
        """A new user, so that a test's lists hold nothing of another test's."""
        made = await asyncio.to_thread(self.server.add_user, f"{name}-{secrets.token_hex(4)}")
        return await self._person(made.api_key)

    async def bot(self, owner: Person, name: str | None = None, description: str = DESCRIPTION) -> Bot:
        """A new agent of a person."""
        name = name or f"Bot {next(self._numbers)}"
        agent_id, api_key = await owner.register(name, description)
        rest = await self.rest(api_key)
        me = (await rest.agent_api_identity.get_agent_me()).data
        assert me.id == agent_id
        return Bot(agent_id, name, me.handle, api_key, rest, await self.raw(api_key))

    async def bots(self, owner: Person, count: int) -> list[Bot]:
        return [await self.bot(owner) for _ in range(count)]

    async def rest(self, api_key: str) -> AsyncRestClient:
        client = await self._clients.enter_async_context(
            httpx.AsyncClient(timeout=30, follow_redirects=True, verify=TLS)
        )
        return AsyncRestClient(base_url=self.server.url, api_key=api_key, httpx_client=client)

    async def raw(self, api_key: str) -> httpx.AsyncClient:
        return await self._clients.enter_async_context(
            httpx.AsyncClient(base_url=self.server.url, headers={"x-api-key": api_key}, timeout=30, verify=TLS)
        )

    async def _person(self, api_key: str) -> Person:
        rest = await self.rest(api_key)
        me = (await rest.human_api_profile.get_my_profile()).data
        name = " ".join(part for part in (me.first_name, me.last_name) if part)
        return Person(me.id, name, me.handle, api_key, rest, await self.raw(api_key))
