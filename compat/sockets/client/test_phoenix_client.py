"""The bare Python Phoenix client, as an agent and as a person, in both frame formats, with its key in either place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from band_rest.types import ChatEventRequest
from phoenix_channels_python_client.client import PhoenixChannelsProtocolVersion as Version
from phoenix_channels_python_client.exceptions import PHXConnectionError, PHXTopicError

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, token
from harness.channels import Inbox, client
from harness.server import Server
from harness.waiting import eventually, within


def shows(message: str, agent: Bot, status: str) -> Callable[[dict[str, Any]], bool]:
    """Picks the updates of a message by what they say about one agent."""

    def fits(payload: dict[str, Any]) -> bool:
        delivery = payload["metadata"].get("delivery_status", {}).get(agent.id, {})
        return payload["id"] == message and delivery.get("status") == status

    return fits


@pytest.mark.parametrize("version", [Version.V1, Version.V2])
@pytest.mark.parametrize("key_in", ["query", "header"])
async def test_an_agent_hears_what_mentions_it(
    server: Server, ann: Person, bot: Bot, version: Version, key_in: str
) -> None:
    room = await ann.open_room(bot)
    inbox = Inbox()
    async with client(server, bot.api_key, key_in=key_in, agent_id=bot.id, protocol_version=version) as socket:
        for topic in (f"agent_control:{bot.id}", f"agent_rooms:{bot.id}", f"room_participants:{room}"):
            await socket.subscribe_to_topic(topic)
        await socket.subscribe_to_topic(f"chat_room:{room}", inbox)

        sent = await ann.say(room, "hello", bot)
        event, payload = await inbox.next()

        assert event == "message_created"
        assert (payload["id"], payload["content"]) == (sent.id, f"{token(bot)} hello")
        assert (payload["sender_id"], payload["sender_type"], payload["message_type"]) == (ann.id, "User", "text")
        assert payload["chat_room_id"] == room
        assert [one["id"] for one in payload["metadata"]["mentions"]] == [bot.id]
        await within(2, socket.unsubscribe_from_topic(f"chat_room:{room}"), what="the leave is answered")


async def test_an_agent_hears_nothing_else_and_everything_in_order(
    server: Server, ann: Person, bot: Bot, cast: Cast
) -> None:
    other = await cast.bot(ann)
    room = await ann.open_room(bot, other)
    inbox = Inbox()
    async with client(server, bot.api_key) as socket:
        await socket.subscribe_to_topic(f"chat_room:{room}", inbox)
        await ann.say(room, "not for you", other)
        await bot.say(room, "my own", ann)
        await other.rest.agent_api_events.create_agent_chat_event(
            room, event=ChatEventRequest(content="thinking", message_type="thought")
        )
        sent = [(await ann.say(room, f"number {number}", bot)).id for number in range(10)]
        heard = [await inbox.next() for _ in sent]

    assert [(event, payload["id"]) for event, payload in heard] == [("message_created", id) for id in sent]
    assert inbox.empty


async def test_a_push_is_a_delivery(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    async with client(server, bot.api_key) as socket:
        await socket.subscribe_to_topic(f"chat_room:{room}")
        sent = await ann.say(room, "hello", bot)
        assert (await ann.settled(room, sent.id, bot, "delivered"))["delivered_at"] is not None


async def test_an_agent_learns_of_its_rooms(server: Server, ann: Person, bot: Bot) -> None:
    inbox = Inbox()
    async with client(server, bot.api_key) as socket:
        await socket.subscribe_to_topic(f"agent_rooms:{bot.id}", inbox)
        untitled = await bot.open_room()
        assert (await inbox.expect("room_added"))["id"] == untitled
        titled = await ann.open_room(bot, title="Plans")
        added = await inbox.expect("room_added")
        assert (added["id"], added["title"]) == (titled, "Plans")
        await ann.remove(titled, bot)
        assert (await inbox.expect("room_removed"))["id"] == titled


async def test_an_owner_may_act_as_their_agent_with_their_own_key(server: Server, ann: Person, bot: Bot) -> None:
    async with client(server, ann.api_key, agent_id=bot.id) as socket:
        await socket.subscribe_to_topic(f"agent_control:{bot.id}")
        with pytest.raises(PHXTopicError, match="unauthorized"):
            await socket.subscribe_to_topic(f"user_rooms:{ann.id}")


@pytest.mark.parametrize("version", [Version.V1, Version.V2])
async def test_a_person_hears_everything_in_a_room(server: Server, ann: Person, bot: Bot, version: Version) -> None:
    room = await ann.open_room(bot)
    inbox = Inbox()
    async with client(server, ann.api_key, protocol_version=version) as socket:
        await socket.subscribe_to_topic(f"chat_room:{room}", inbox)

        asked = await ann.say(room, "hello", bot)
        assert (await inbox.expect("message_created"))["id"] == asked.id
        thought = ChatEventRequest(content="thinking", message_type="thought")
        event = (await bot.rest.agent_api_events.create_agent_chat_event(room, event=thought)).data
        shown = await inbox.expect("event_created")
        assert (shown["id"], shown["message_type"], shown["content"]) == (event.id, "thought", "thinking")
        answered = await bot.say(room, "hello yourself", ann)
        heard = await inbox.expect("message_created")
        assert (heard["id"], heard["sender_id"], heard["sender_name"]) == (answered.id, bot.id, bot.name)


async def test_a_person_sees_each_step_of_a_delivery(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    inbox = Inbox()
    marks = bot.rest.agent_api_messages
    async with client(server, ann.api_key) as socket:
        await socket.subscribe_to_topic(f"chat_room:{room}", inbox)
        sent = (await ann.say(room, "hello", bot)).id

        await bot.next(room)
        await inbox.expect("message_updated", shows(sent, bot, "delivered"))
        await marks.mark_agent_message_processing(room, sent)
        await inbox.expect("message_updated", shows(sent, bot, "processing"))
        await marks.mark_agent_message_failed(room, sent, error="no luck")
        failed = await inbox.expect("message_updated", shows(sent, bot, "failed"))
        await marks.mark_agent_message_processing(room, sent)
        await inbox.expect("message_updated", shows(sent, bot, "processing"))
        await marks.mark_agent_message_processed(room, sent)
        done = await inbox.expect("message_updated", shows(sent, bot, "processed"))

    assert failed["metadata"]["delivery_status"][bot.id]["attempts"][0]["error"] == "no luck"
    delivery = done["metadata"]["delivery_status"][bot.id]
    assert delivery["current_attempt"] == 2
    assert [one["status"] for one in delivery["attempts"]] == ["failed", "success"]


async def test_a_person_learns_of_their_rooms(server: Server, ann: Person, bot: Bot) -> None:
    inbox = Inbox()
    async with client(server, ann.api_key) as socket:
        await socket.subscribe_to_topic(f"user_rooms:{ann.id}", inbox)
        room = await bot.open_room(ann, title="Plans")
        assert (await inbox.expect("room_added", lambda room_row: room_row["id"] == room))["title"] == "Plans"
        await ann.remove(room, ann)
        await inbox.expect("room_removed", lambda room_row: room_row["id"] == room)

        mine = await ann.open_room()
        await inbox.expect("room_added", lambda room_row: room_row["id"] == mine)
        await ann.raw.patch(f"/api/v1/me/chats/{mine}", json={"chat": {"title": "Launch"}})
        await inbox.expect("room_updated", lambda row: (row["id"], row["title"]) == (mine, "Launch"))


async def test_those_in_a_room_see_who_comes_and_goes(server: Server, ann: Person, bot: Bot, cast: Cast) -> None:
    late = await cast.bot(ann, "Late")
    room = await ann.open_room(bot)
    for who in (ann, bot):
        inbox = Inbox()
        async with client(server, who.api_key) as socket:
            await socket.subscribe_to_topic(f"room_participants:{room}", inbox)
            await ann.add(room, late)
            added = await inbox.expect("participant_added")
            assert (added["id"], added["name"], added["type"], added["handle"]) == (
                late.id,
                late.name,
                "Agent",
                late.handle,
            )
            await ann.remove(room, late)
            removed = await inbox.expect("participant_removed")
            assert (removed["id"], removed["name"], removed["type"]) == (late.id, late.name, "Agent")


async def test_each_topic_opens_to_those_whom_it_concerns(server: Server, ann: Person, bot: Bot, cast: Cast) -> None:
    stranger = await cast.person("stranger")
    room = await ann.open_room(bot)
    agents_room = await bot.open_room()
    of_a_room = [f"{topic}:{room}" for topic in ("chat_room", "room_participants", "room_tasks")]
    of_an_agent = [f"{topic}:{bot.id}" for topic in ("agent_control", "agent_rooms", "agent_contacts")]
    of_a_person = [f"{topic}:{ann.id}" for topic in ("user_rooms", "user_contacts", "tasks")]
    table = [
        (bot, [*of_an_agent, *of_a_room], [*of_a_person, f"room_activity:{room}"]),
        (ann, [*of_a_person, *of_a_room, f"room_activity:{room}", f"chat_room:{agents_room}"], of_an_agent),
        (stranger, [f"user_rooms:{stranger.id}"], [*of_an_agent, *of_a_person, *of_a_room, f"room_activity:{room}"]),
    ]
    for who, opened, closed in table:
        async with client(server, who.api_key) as socket:
            for topic in opened:
                await socket.subscribe_to_topic(topic)
            for topic in closed:
                with pytest.raises(PHXTopicError, match="^unauthorized$"):
                    await socket.subscribe_to_topic(topic)


@pytest.mark.parametrize("version", [Version.V1, Version.V2])
async def test_a_room_that_is_not_there_looks_like_one_that_is_not_ones_own(
    server: Server, bot: Bot, version: Version
) -> None:
    async with client(server, bot.api_key, protocol_version=version) as socket:
        for nothing in (UNKNOWN_ID, "not-a-room"):
            with pytest.raises(PHXTopicError, match="^unauthorized$"):
                await socket.subscribe_to_topic(f"chat_room:{nothing}")
        with pytest.raises(PHXTopicError, match="^unmatched topic$"):
            await socket.subscribe_to_topic(f"weather:{UNKNOWN_ID}")


async def test_leaving_ends_the_pushes_and_joining_again_resumes_them(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    topic = f"chat_room:{room}"
    before, after = Inbox(), Inbox()
    async with client(server, bot.api_key) as socket:
        await socket.subscribe_to_topic(topic, before)
        await within(2, socket.unsubscribe_from_topic(topic), what="the leave is answered")
        await ann.say(room, "nobody listens", bot)
        await socket.subscribe_to_topic(topic, after)
        sent = (await ann.say(room, "somebody listens", bot)).id
        assert (await after.expect("message_created", lambda message: message["id"] == sent))["id"] == sent
    assert before.empty


@pytest.mark.parametrize("version", [Version.V1, Version.V2])
async def test_heartbeats_are_acknowledged(server: Server, bot: Bot, version: Version) -> None:
    acknowledged: asyncio.Queue[None] = asyncio.Queue()
    async with client(
        server,
        bot.api_key,
        protocol_version=version,
        heartbeat_interval_s=0.05,
        on_heartbeat_ack=lambda: acknowledged.put_nowait(None),
    ):
        for _ in range(3):
            await within(5, acknowledged.get(), what="a heartbeat is acknowledged")


@pytest.mark.parametrize("key_in", ["query", "header"])
@pytest.mark.parametrize("key", ["band_a_" + "0" * 43, "band_u_" + "0" * 43, "nonsense"])
async def test_a_key_that_opens_nothing_is_refused(server: Server, key_in: str, key: str) -> None:
    with pytest.raises(PHXConnectionError, match="403"):
        async with client(server, key, key_in=key_in, auto_reconnect=False):
            pass


async def test_an_agent_id_that_is_not_the_keys_is_refused(server: Server, ann: Person, bot: Bot, cast: Cast) -> None:
    sibling = await cast.bot(ann)
    stranger = await cast.person("stranger")
    for key in (sibling.api_key, stranger.api_key):
        with pytest.raises(PHXConnectionError, match="403"):
            async with client(server, key, agent_id=bot.id, auto_reconnect=False):
                pass


@pytest.mark.parametrize("how", ["killed", "restarted"])
async def test_the_client_comes_back_after_its_server(own_server: Server, how: str) -> None:
    back = asyncio.Event()

    async def on_reconnect() -> None:
        back.set()

    async with Cast(own_server) as cast:
        ann = await cast.person()
        bot = await cast.bot(ann)
        room = await ann.open_room(bot)
        inbox = Inbox()
        async with client(own_server, bot.api_key, on_reconnect=on_reconnect) as socket:
            await socket.subscribe_to_topic(f"chat_room:{room}", inbox)
            # In a thread, so that the clients of this process can answer while the server drains.
            await asyncio.to_thread(own_server.kill if how == "killed" else own_server.stop)
            await asyncio.to_thread(own_server.start)
            await within(20, back.wait(), what="the client has joined again")

            async def joined() -> bool:
                return socket.is_topic_joined(f"chat_room:{room}")

            await eventually(joined, what="the topic is joined again")
            sent = (await ann.say(room, "welcome back", bot)).id
            assert (await inbox.expect("message_created"))["id"] == sent
