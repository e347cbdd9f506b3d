"""The frames themselves: echoes, refusals, closes, and what happens before the upgrade."""

from __future__ import annotations

import asyncio
import json

import pytest
from websockets.asyncio.client import connect

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, token
from harness.frames import Frame, open_socket, refused_upgrade, url
from harness.server import Server


async def test_every_reply_echoes_both_refs(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    topic = f"chat_room:{room}"
    async with open_socket(server, bot.api_key) as socket:
        joined = await socket.join(topic)
        assert joined.payload == {"status": "ok", "response": {}}

        refused = await socket.join(f"chat_room:{UNKNOWN_ID}")
        assert refused.payload == {"status": "error", "response": {"reason": "unauthorized"}}
        unknown = await socket.join("weather:today")
        assert unknown.payload == {"status": "error", "response": {"reason": "unmatched topic"}}

        ref = await socket.send(joined.join_ref, topic, "shout")
        assert await socket.reply(topic, ref) == Frame(
            joined.join_ref, ref, topic, "phx_reply", {"status": "error", "response": {"reason": "unmatched event"}}
        )
        ref = await socket.send("j99", f"chat_room:{UNKNOWN_ID}", "shout")
        assert await socket.reply(f"chat_room:{UNKNOWN_ID}", ref) == Frame(
            "j99",
            ref,
            f"chat_room:{UNKNOWN_ID}",
            "phx_reply",
            {"status": "error", "response": {"reason": "unmatched topic"}},
        )

        ref = await socket.send(joined.join_ref, topic, "phx_leave")
        assert (await socket.reply(topic, ref)).payload == {"status": "ok", "response": {}}
        closed = await socket.wait(lambda frame: frame.event == "phx_close")
        assert closed == Frame(joined.join_ref, joined.join_ref, topic, "phx_close", {})

        ref = await socket.send(joined.join_ref, topic, "phx_leave")
        assert (await socket.reply(topic, ref)).payload == {"status": "ok", "response": {}}
        await socket.settle()


async def test_a_second_join_of_a_topic_replaces_the_first(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    topic = f"chat_room:{room}"
    async with open_socket(server, bot.api_key) as socket:
        first = await socket.join(topic)
        second = await socket.join(topic)

        closed = await socket.wait(lambda frame: frame.event == "phx_close")
        assert closed == Frame(first.join_ref, first.join_ref, topic, "phx_close", {})
        # A leave of the join that is over changes nothing; a push then carries the new join's reference.
        await socket.send(first.join_ref, topic, "phx_leave")
        await socket.settle()
        assert socket.joined[topic] == second.join_ref
        sent = await ann.say(room, "hello", bot)
        assert (await socket.pushed(topic, "message_created"))["id"] == sent.id


async def test_a_message_is_pushed_once_to_each_joined_topic(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    topic = f"chat_room:{room}"
    async with open_socket(server, bot.api_key) as socket:
        await socket.joins(topic)
        sent = [(await ann.say(room, f"number {number}", bot)).id for number in range(20)]
        assert [(await socket.pushed(topic, "message_created"))["id"] for _ in sent] == sent
        await socket.settle()
        assert socket.kept(topic, "message_created") == []


async def test_the_longest_message_fits_into_a_frame_that_clients_take(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    topic = f"chat_room:{room}"
    # Without a limit of its own, this socket would take what the clients refuse.
    async with connect(url(server), additional_headers={"x-api-key": bot.api_key}, max_size=1_000_000) as connection:
        await connection.send(json.dumps(["1", "1", topic, "phx_join", {}]))
        assert json.loads(await connection.recv())[4]["status"] == "ok"
        for content in ("x" * 524_288, '"' * 440_000):
            await ann.say(room, content, bot)
            pushed = json.loads(await connection.recv())[4]
            assert pushed["content"] == f"{token(bot)} {content}"


async def test_whoever_was_removed_hears_no_more_but_may_still_leave(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    topics = (f"chat_room:{room}", f"room_participants:{room}")
    async with open_socket(server, bot.api_key) as socket:
        await socket.joins(f"agent_rooms:{bot.id}", *topics)
        await ann.remove(room, bot)
        await socket.pushed(f"agent_rooms:{bot.id}", "room_removed")
        for topic in topics:
            ref = await socket.send(socket.joined[topic], topic, "phx_leave")
            assert (await socket.reply(topic, ref)).payload == {"status": "ok", "response": {}}
            assert (await socket.join(topic)).payload["response"] == {"reason": "unauthorized"}


async def test_the_older_frame_format_is_spoken_when_asked_for_or_when_nothing_is(
    server: Server, ann: Person, bot: Bot
) -> None:
    room = await ann.open_room(bot)
    topic = f"chat_room:{room}"
    for query in ("?vsn=1.0.0", ""):
        async with connect(server.socket_url + query, additional_headers={"x-api-key": bot.api_key}) as connection:
            await connection.send(json.dumps({"topic": topic, "event": "phx_join", "payload": {}, "ref": "7"}))
            assert json.loads(await connection.recv()) == {
                "topic": topic,
                "event": "phx_reply",
                "payload": {"status": "ok", "response": {}},
                "ref": "7",
            }
            sent = await ann.say(room, "hello", bot)
            pushed = json.loads(await connection.recv())
            assert (pushed["topic"], pushed["event"], pushed["ref"]) == (topic, "message_created", None)
            assert pushed["payload"]["id"] == sent.id


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (b"\x00\x01", 1003),
        ("this is not JSON", 1007),
        ('{"topic":"phoenix","event":"heartbeat","payload":{},"ref":"1"}', 1007),
        ('[null,"1","phoenix","heartbeat"]', 1007),
        ('[null,"1","phoenix","heartbeat",[]]', 1007),
        (json.dumps([None, "1", "phoenix", "heartbeat", {"pad": "x" * 70_000}]), 1009),
    ],
)
async def test_a_frame_that_is_none_ends_the_socket(server: Server, bot: Bot, frame: str | bytes, code: int) -> None:
    async with open_socket(server, bot.api_key) as socket:
        await socket.connection.send(frame)
        assert await socket.closed() == code


async def test_credentials_are_refused_before_the_upgrade(server: Server, ann: Person, bot: Bot, cast: Cast) -> None:
    stranger = await cast.person("stranger")
    refused = [
        (None, {}),
        ("nonsense", {}),
        ("band_a_" + "0" * 43, {"agent_id": bot.id}),
        (None, {"api_key": "nonsense"}),
        (None, {"token": "a.b.c"}),
        (bot.api_key, {"api_key": ann.api_key}),
        (bot.api_key, {"agent_id": stranger.id}),
        (stranger.api_key, {"agent_id": bot.id}),
        (ann.api_key, {"agent_id": UNKNOWN_ID}),
        (bot.api_key, {"vsn": "9.0.0"}),
    ]
    for key, query in refused:
        # Clients ask a second time to learn why, and must get the same answer.
        for _ in range(2):
            assert await refused_upgrade(server, key, **query) == (403, None), (key, query)


async def test_conflicts_are_refused_before_the_upgrade_with_a_reason(server: Server, bot: Bot) -> None:
    status, body = await refused_upgrade(server, bot.api_key, agent_id=bot.id, on_conflict="fight")
    assert (status, body["error"]["code"]) == (400, "invalid_on_conflict")

    async with open_socket(server, bot.api_key, agent_id=bot.id, on_conflict="reject") as socket:
        await socket.joins(f"agent_control:{bot.id}")
        for _ in range(2):
            status, body = await refused_upgrade(server, bot.api_key, agent_id=bot.id, on_conflict="reject")
            assert (status, body["error"]["code"]) == (409, "connection_conflict")
            assert body["error"]["message"]
        await socket.settle()


async def test_a_probe_that_joins_nothing_supersedes_nobody(server: Server, bot: Bot) -> None:
    async with open_socket(server, bot.api_key, agent_id=bot.id) as socket:
        await socket.joins(f"agent_control:{bot.id}")
        async with open_socket(server, bot.api_key, agent_id=bot.id) as probe:
            await probe.settle()
        await socket.settle()
        assert socket.kept(f"agent_control:{bot.id}", "supersede") == []


async def test_a_deleted_agent_is_cut_off_and_stays_out(server: Server, ann: Person, bot: Bot) -> None:
    async with open_socket(server, bot.api_key, agent_id=bot.id) as socket:
        await socket.joins(f"agent_control:{bot.id}")
        await ann.rest.human_api_agents.delete_my_agent(bot.id, force=True)
        assert await socket.closed() == 1001
    assert await refused_upgrade(server, bot.api_key, agent_id=bot.id) == (403, None)


async def test_a_revoked_key_is_cut_off_and_stays_out(server: Server, bot: Bot) -> None:
    async with open_socket(server, bot.api_key, agent_id=bot.id) as socket:
        await socket.joins(f"agent_control:{bot.id}")
        await asyncio.to_thread(server.command, "key", "revoke", bot.handle)
        assert await socket.closed() == 1001
    assert await refused_upgrade(server, bot.api_key, agent_id=bot.id) == (403, None)


async def test_a_server_that_ends_says_that_it_will_be_back(own_server: Server) -> None:
    async with Cast(own_server) as cast:
        bot = await cast.bot(await cast.person())
        async with open_socket(own_server, bot.api_key) as socket:
            await socket.joins(f"agent_rooms:{bot.id}")
            stopping = asyncio.create_task(asyncio.to_thread(own_server.stop))
            assert await socket.closed() == 1012
        await stopping
