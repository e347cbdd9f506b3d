"""Every push that the server makes, caused once and held against the validator that band-sdk runs before it trusts one
(`harness.frames.Socket` calls it on each frame), for agents and for people."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from band_rest.types import ChatEventRequest, ChatMessageRequest

from harness.cast import Bot, Cast, Person, mention, token
from harness.files import upload
from harness.frames import Socket, open_socket
from harness.server import Server


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


@pytest.fixture
async def agent(server: Server, bot: Bot, room: str) -> AsyncIterator[Socket]:
    """The agent's socket, in the topics that band-sdk joins."""
    async with open_socket(server, bot.api_key, agent_id=bot.id) as socket:
        await socket.joins(
            f"agent_control:{bot.id}", f"agent_rooms:{bot.id}", f"chat_room:{room}", f"room_participants:{room}"
        )
        yield socket


@pytest.fixture
async def person(server: Server, ann: Person, room: str) -> AsyncIterator[Socket]:
    """Ann's socket, in the topics of a room and of her own."""
    async with open_socket(server, ann.api_key) as socket:
        await socket.joins(
            f"user_rooms:{ann.id}", f"chat_room:{room}", f"room_participants:{room}", f"room_activity:{room}"
        )
        yield socket


async def test_message_created_is_the_row_itself(
    ann: Person, bot: Bot, room: str, agent: Socket, person: Socket
) -> None:
    sent = await ann.say(room, "hello", bot)

    for socket in (agent, person):
        pushed = await socket.pushed(f"chat_room:{room}", "message_created")
        assert (pushed["id"], pushed["content"], pushed["message_type"]) == (sent.id, f"{token(bot)} hello", "text")
        assert (pushed["sender_id"], pushed["sender_type"]) == (ann.id, "User")
        assert (pushed["chat_room_id"], pushed["thread_id"], pushed["attachments"]) == (room, None, [])
        assert pushed["metadata"]["mentions"] == [{"id": bot.id, "handle": bot.handle, "name": bot.name}]
        assert pushed["metadata"]["status"] == "sent"


async def test_attachments_travel_with_a_message(
    ann: Person, bot: Bot, room: str, agent: Socket, person: Socket
) -> None:
    file = await upload(bot, room, b"words", "words.txt")
    for sender, sent in (
        (bot.rest.agent_api_messages.create_agent_chat_message, ann),
        (ann.rest.human_api_messages.send_my_chat_message, bot),
    ):
        message = ChatMessageRequest(content="See there", mentions=[mention(sent)], attachment_ids=[file.id])
        await sender(room, message=message)
    # An agent is not told of its own message.
    for socket in (agent, person, person):
        (pushed,) = (await socket.pushed(f"chat_room:{room}", "message_created"))["attachments"]
        assert (pushed["id"], pushed["name"], pushed["sha256"]) == (file.id, "words.txt", file.sha_256)


async def test_message_updated_carries_the_delivery(
    ann: Person, bot: Bot, room: str, agent: Socket, person: Socket
) -> None:
    sent = (await ann.say(room, "hello", bot)).id

    def says(status: str) -> Any:
        return lambda payload: (
            payload["id"] == sent
            and payload["metadata"].get("delivery_status", {}).get(bot.id, {}).get("status") == status
        )

    await person.pushed(f"chat_room:{room}", "message_updated", says("delivered"))
    await bot.rest.agent_api_messages.mark_agent_message_processing(room, sent)
    running = await person.pushed(f"chat_room:{room}", "message_updated", says("processing"))
    await bot.rest.agent_api_messages.mark_agent_message_processed(room, sent)
    done = await person.pushed(f"chat_room:{room}", "message_updated", says("processed"))

    (attempt,) = running["metadata"]["delivery_status"][bot.id]["attempts"]
    assert (attempt["attempt_number"], attempt["status"]) == (1, "processing")
    delivery = done["metadata"]["delivery_status"][bot.id]
    assert (delivery["current_attempt"], delivery["attempts"][0]["status"]) == (1, "success")
    # An agent has no use for it and would warn each time.
    await agent.settle()
    assert agent.kept(f"chat_room:{room}", "message_updated") == []


async def test_event_created_is_for_people(bot: Bot, room: str, agent: Socket, person: Socket) -> None:
    event = ChatEventRequest(content="thinking", message_type="thought", metadata={"depth": 3})
    made = (await bot.rest.agent_api_events.create_agent_chat_event(room, event=event)).data

    pushed = await person.pushed(f"chat_room:{room}", "event_created")

    assert (pushed["id"], pushed["content"], pushed["message_type"]) == (made.id, "thinking", "thought")
    assert (pushed["sender_id"], pushed["metadata"]) == (bot.id, {"depth": 3})
    await agent.settle()
    assert agent.kept(f"chat_room:{room}", "event_created") == []


async def test_room_added_has_a_title_even_without_one(ann: Person, bot: Bot, agent: Socket, person: Socket) -> None:
    room = await bot.open_room(ann)
    for socket, topic in ((agent, f"agent_rooms:{bot.id}"), (person, f"user_rooms:{ann.id}")):
        added = await socket.pushed(topic, "room_added", lambda payload: payload["id"] == room)
        assert added["title"] == "New room"
        assert added["task_id"] is None and added["inserted_at"] <= added["updated_at"]


async def test_room_removed_says_what_both_sdks_need(ann: Person, bot: Bot, agent: Socket, person: Socket) -> None:
    room = await bot.open_room(ann, title="Plans")
    heir = f"agent_rooms:{bot.id}"
    await ann.rest.human_api_participants.remove_my_chat_participant(room, ann.id)
    await ann.raw.delete(f"/api/v1/me/chats/{room}")

    for socket, topic in ((agent, heir), (person, f"user_rooms:{ann.id}")):
        removed = await socket.pushed(topic, "room_removed", lambda payload: payload["id"] == room)
        assert (removed["title"], removed["status"], removed["type"]) == ("Plans", "removed", "direct")
        assert isinstance(removed["removed_at"], str)


async def test_room_deleted_and_room_removed_both_announce_the_end(
    ann: Person, bot: Bot, room: str, agent: Socket, person: Socket
) -> None:
    await ann.raw.delete(f"/api/v1/me/chats/{room}")
    for socket, rooms in ((agent, f"agent_rooms:{bot.id}"), (person, f"user_rooms:{ann.id}")):
        assert (await socket.pushed(f"room_participants:{room}", "room_deleted"))["id"] == room
        assert (await socket.pushed(rooms, "room_removed"))["id"] == room


async def test_room_updated_is_the_whole_row(ann: Person, room: str, person: Socket) -> None:
    await ann.raw.patch(f"/api/v1/me/chats/{room}", json={"chat": {"title": "Launch"}})
    updated = await person.pushed(f"user_rooms:{ann.id}", "room_updated", lambda row: row.get("title") == "Launch")
    assert {
        "id",
        "title",
        "task_id",
        "status",
        "type",
        "last_message_at",
        "inserted_at",
        "updated_at",
    } <= updated.keys()

    await ann.raw.post(f"/api/v1/me/chats/{room}/archive")
    await person.pushed(f"user_rooms:{ann.id}", "room_updated", lambda row: row["status"] == "archived")


async def test_participants_are_announced_with_name_and_handle(
    ann: Person, room: str, agent: Socket, person: Socket, cast: Cast
) -> None:
    late = await cast.bot(ann, "Late")
    topic = f"room_participants:{room}"

    await ann.add(room, late)
    for socket in (agent, person):
        added = await socket.pushed(topic, "participant_added", lambda payload: payload["id"] == late.id)
        assert (added["name"], added["type"], added["handle"]) == (late.name, "Agent", late.handle)
        assert "email" not in added

    await ann.remove(room, late)
    for socket in (agent, person):
        removed = await socket.pushed(topic, "participant_removed", lambda payload: payload["id"] == late.id)
        assert (removed["name"], removed["type"]) == (late.name, "Agent")


async def test_a_person_is_announced_as_well(ann: Person, bot: Bot, agent: Socket) -> None:
    room = await bot.open_room()
    await agent.joins(f"room_participants:{room}")
    await bot.add(room, ann)
    added = await agent.pushed(
        f"room_participants:{room}", "participant_added", lambda payload: payload["id"] == ann.id
    )
    assert (added["type"], added["handle"]) == ("User", ann.handle)


async def test_supersede_tells_the_older_connection_to_stay_away(server: Server, bot: Bot, agent: Socket) -> None:
    async with open_socket(server, bot.api_key, agent_id=bot.id) as newer:
        await newer.joins(f"agent_control:{bot.id}")
        pushed = await agent.pushed(f"agent_control:{bot.id}", "supersede")

        assert (pushed["reason"], pushed["retryable"]) == ("session.already_connected", False)
        assert isinstance(pushed["message"], str) and "correlation_id" in pushed
        assert await agent.closed() == 1000
        await newer.settle()


async def test_people_see_who_is_connected(server: Server, bot: Bot, room: str, person: Socket) -> None:
    topic = f"room_participants:{room}"
    async with open_socket(server, bot.api_key, agent_id=bot.id) as agent:
        await agent.joins(f"agent_control:{bot.id}")
        await person.pushed(topic, "participant_presence_changed")
        await person.pushed(topic, "agent_connected")
    await person.pushed(topic, "participant_presence_changed")
    await person.pushed(topic, "agent_disconnected")


async def test_people_see_who_is_at_work(bot: Bot, room: str, person: Socket) -> None:
    topic = f"room_activity:{room}"
    await bot.rest.agent_api_activity.report_agent_chat_activity(room, working=True)
    at_work = await person.pushed(topic, "activity_changed")
    assert bot.id in str(at_work["working_agents"])
    await bot.rest.agent_api_activity.report_agent_chat_activity(room, working=False)
    assert (await person.pushed(topic, "activity_changed"))["working_agents"] == []


async def test_a_late_observer_is_told_who_is_at_work(server: Server, ann: Person, bot: Bot, room: str) -> None:
    await bot.rest.agent_api_activity.report_agent_chat_activity(room, working=True)
    async with open_socket(server, ann.api_key) as socket:
        reply = await socket.join(f"room_activity:{room}")
        assert bot.id in str(reply.payload["response"])
