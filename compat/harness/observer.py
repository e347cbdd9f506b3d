"""A person watching a room over their own socket, through band-sdk's client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from band.client.streaming import MessageCreatedPayload, WebSocketClient

from harness.cast import Identity, Person
from harness.server import Server
from harness.waiting import eventually


class Observer:
    """What a person's socket has shown of one room so far."""

    def __init__(self) -> None:
        self.created: list[MessageCreatedPayload] = []
        self.updated: list[MessageCreatedPayload] = []

    async def on_created(self, message: MessageCreatedPayload) -> None:
        self.created.append(message)

    async def on_updated(self, message: MessageCreatedPayload) -> None:
        self.updated.append(message)

    def states(self, message: str, recipient: Identity) -> list[str]:
        """The states that a delivery went through, each named once in the order of its first sight."""
        seen = [
            update.metadata.delivery_status[recipient.id]["status"]
            for update in self.updated
            if update.id == message and recipient.id in (update.metadata.delivery_status or {})
        ]
        return list(dict.fromkeys(seen))

    async def sees(self, message: str, recipient: Identity, state: str) -> None:
        async def seen() -> bool:
            return state in self.states(message, recipient)

        await eventually(seen, what=f"the person's socket shows {message} as {state}")


@asynccontextmanager
async def observing(server: Server, person: Person, room: str) -> AsyncIterator[Observer]:
    observer = Observer()
    client = WebSocketClient(server.socket_url, person.api_key)
    async with client:
        await client.join_chat_room_channel(room, observer.on_created, observer.on_updated)
        yield observer
    assert client.validation_error_count == 0, "band-sdk-core refused what the person's socket was sent"
