"""An agent's life: backlogs, rooms that come and go, a server that goes away, a second instance, and sudden death."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from band.core.exceptions import AgentAlreadyRunningError
from band.core.protocols import AgentToolsProtocol
from band.core.types import ConflictPolicy, PlatformMessage
from band.runtime.agentconfig import AgentConfig
from band_rest import RestClient
from band_rest.errors import ForbiddenError, UnauthorizedError

from harness.cast import Bot, Cast, Person, message, token
from harness.scripted import TWO_INSTANCES, Scripted, agent_of, ended, replying, running, subscribed
from harness.server import Server
from harness.waiting import within
from harness.worker import worker


async def test_a_backlog_is_worked_off_in_order(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    sent = [(await ann.say(room, f"number {number}", bot)).id for number in range(5)]
    adapter = Scripted(replying())

    async with running(agent_of(server, bot, adapter)):
        for message in sent:
            done = await ann.settled(room, message, bot, "processed")
            assert [one["status"] for one in done["attempts"]] == ["success"]

    assert adapter.heard_ids == sent
    assert await bot.next(room) is None


async def test_what_arrives_while_the_backlog_is_worked_off_comes_after_it(
    server: Server, ann: Person, bot: Bot
) -> None:
    room = await ann.open_room(bot)
    sent = [(await ann.say(room, f"number {number}", bot)).id for number in range(3)]

    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        if message.id == sent[0]:
            sent.append((await ann.say(room, "one more", bot)).id)
        await tools.send_message("Done", mentions=[message.sender_id])

    adapter = Scripted(turn)
    async with running(agent_of(server, bot, adapter)):
        await ann.settled(room, sent[2], bot, "processed")
        await ann.settled(room, sent[3], bot, "processed")

    assert adapter.heard_ids == sent


async def test_two_agents_and_a_person_hold_a_conversation(server: Server, ann: Person, bot: Bot, cast: Cast) -> None:
    reviewer = await cast.bot(ann, "Reviewer")
    room = await ann.open_room(bot, reviewer)

    async def write(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        if message.sender_id == ann.id:
            await tools.send_message("Please review", mentions=[f"@{reviewer.handle}"])
        else:
            await tools.send_message("It is finished", mentions=[ann.id])

    async def review(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        await tools.send_message("Looks good", mentions=[f"@{bot.handle}"])

    writing, reviewing = Scripted(write), Scripted(review)
    async with running(agent_of(server, bot, writing)), running(agent_of(server, reviewer, reviewing)):
        asked = (await ann.say(room, "Write a poem", bot)).id
        await ann.settled(room, asked, bot, "processed")
        draft = next(row.id for row in await ann.messages(room, message_type="text") if row.sender_id == bot.id)
        await ann.settled(room, draft, reviewer, "processed")
        verdict = next(row.id for row in await ann.messages(room) if row.sender_id == reviewer.id)
        await ann.settled(room, verdict, bot, "processed")

    assert await ann.texts(room) == [
        (ann.id, f"{token(bot)} Write a poem"),
        (bot.id, f"{token(reviewer)} Please review"),
        (reviewer.id, f"{token(bot)} Looks good"),
        (bot.id, f"{token(ann)} It is finished"),
    ]
    assert writing.heard_ids == [asked, verdict]
    assert reviewing.heard_ids == [draft]


async def test_an_agent_joins_the_room_it_is_added_to(server: Server, ann: Person, bot: Bot) -> None:
    async with running(agent_of(server, bot, Scripted(replying()))) as agent:
        room = await ann.open_room(bot)
        await subscribed(agent, room)
        sent = (await ann.say(room, "Welcome", bot)).id
        await ann.settled(room, sent, bot, "processed")


async def test_a_room_that_an_agent_creates_is_its_own_at_once(server: Server, ann: Person, bot: Bot) -> None:
    async with running(agent_of(server, bot, Scripted(replying()))) as agent:
        room = await bot.open_room(ann)
        await subscribed(agent, room)
        sent = (await ann.say(room, "A fine place", bot)).id
        await ann.settled(room, sent, bot, "processed")


async def test_an_agent_leaves_the_room_it_is_removed_from(server: Server, ann: Person, bot: Bot) -> None:
    left, kept = await ann.open_room(bot), await ann.open_room(bot)
    adapter = Scripted(replying())
    async with running(agent_of(server, bot, adapter)) as agent:
        await subscribed(agent, left)
        first = (await ann.say(left, "Hello", bot)).id
        await ann.settled(left, first, bot, "processed")

        await ann.remove(left, bot)
        await adapter.has_left(left)

        assert not agent.runtime.link.is_room_subscribed(left)
        sent = (await ann.say(kept, "Still here?", bot)).id
        await ann.settled(kept, sent, bot, "processed")


async def test_a_deleted_room_is_torn_down(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    adapter = Scripted(replying())
    async with running(agent_of(server, bot, adapter)) as agent:
        await subscribed(agent, room)
        sent = (await ann.say(room, "Hello", bot)).id
        await ann.settled(room, sent, bot, "processed")

        assert (await ann.raw.delete(f"/api/v1/me/chats/{room}")).is_success
        await adapter.has_left(room)


@pytest.mark.parametrize("how", ["killed", "restarted"])
@pytest.mark.timeout(120)
async def test_an_agent_outlives_its_server(own_server: Server, how: str) -> None:
    async with Cast(own_server) as cast:
        ann = await cast.person()
        bot = await cast.bot(ann, "Writer")
        room = await ann.open_room(bot)
        adapter = Scripted(replying())
        async with running(agent_of(own_server, bot, adapter)) as agent:
            await subscribed(agent, room)
            before = (await ann.say(room, "before", bot)).id
            await ann.settled(room, before, bot, "processed")

            # In a thread, so that the clients of this process can answer while the server drains.
            await asyncio.to_thread(own_server.kill if how == "killed" else own_server.stop)
            # Not in a thread: as long as this process stands still, so does the agent, and nobody listens yet.
            own_server.start()
            meanwhile = said_while_all_else_stands_still(ann, own_server, room, bot)
            done = await ann.settled(room, meanwhile, bot, "processed", within=60)
            after = (await ann.say(room, "after", bot)).id
            await ann.settled(room, after, bot, "processed")

        assert [one["status"] for one in done["attempts"]] == ["success"]
        assert adapter.heard_ids == [before, meanwhile, after]
        assert [sender for sender, _ in await ann.texts(room)] == [ann.id, bot.id] * 3


async def test_a_second_instance_takes_over(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    first, second = Scripted(replying("from the first")), Scripted(replying("from the second"))
    async with running(agent_of(server, bot, first, TWO_INSTANCES)) as older:
        await subscribed(older, room)
        async with running(agent_of(server, bot, second, TWO_INSTANCES)) as newer:
            await ended(older)
            await subscribed(newer, room)
            sent = (await ann.say(room, "Who is there?", bot)).id
            await ann.settled(room, sent, bot, "processed")

        reason = older.runtime.link.last_disconnect_reason
        assert reason is not None
        assert (reason.reason, reason.retryable) == ("session.already_connected", False)

    assert (first.heard_ids, second.heard_ids) == ([], [sent])


async def test_a_careful_instance_does_not_take_over(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    careful = AgentConfig(single_instance=False, conflict_policy=ConflictPolicy.REJECT)
    first, second = Scripted(replying()), Scripted(replying())
    async with running(agent_of(server, bot, first, careful)) as older:
        await subscribed(older, room)
        with pytest.raises(AgentAlreadyRunningError):
            await within(20, agent_of(server, bot, second, careful).start(), what="the second start is refused")
        sent = (await ann.say(room, "Who is there?", bot)).id
        await ann.settled(room, sent, bot, "processed")

    assert (first.heard_ids, second.heard_ids) == ([sent], [])


async def test_a_careful_instance_starts_when_it_is_the_first_again(server: Server, bot: Bot) -> None:
    careful = AgentConfig(single_instance=False, conflict_policy=ConflictPolicy.REJECT)
    for _ in range(2):
        async with running(agent_of(server, bot, Scripted(replying()), careful)):
            pass


async def test_a_wrong_key_ends_the_start(server: Server, bot: Bot) -> None:
    stolen = Bot(bot.id, bot.name, bot.handle, "band_a_" + "0" * 43, bot.rest, bot.raw)
    with pytest.raises(UnauthorizedError):
        await within(20, agent_of(server, stolen, Scripted(replying())).start(), what="the start is refused")


async def test_a_persons_key_is_no_agents_key(server: Server, ann: Person, bot: Bot) -> None:
    confused = Bot(bot.id, bot.name, bot.handle, ann.api_key, bot.rest, bot.raw)
    with pytest.raises(ForbiddenError):
        await within(20, agent_of(server, confused, Scripted(replying())).start(), what="the start is refused")


async def test_an_agent_that_is_killed_in_mid_turn_does_it_again(server: Server, ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    sent = (await ann.say(room, "Take your time", bot)).id

    async with worker(server, bot, "stuck") as stuck:
        assert await stuck.says() == {"working": sent}
        running_attempt = await ann.delivery(room, sent, bot)
        assert running_attempt["status"] == "processing"
        stuck.kill()

    async with worker(server, bot, "replying") as fresh:
        assert await fresh.says() == {"working": sent}
        done = await ann.settled(room, sent, bot, "processed")
        await fresh.stops()

    assert [(one["attempt_number"], one["status"]) for one in done["attempts"]] == [(1, "failed"), (2, "success")]
    assert [sender for sender, _ in await ann.texts(room)] == [ann.id, bot.id]


def said_while_all_else_stands_still(ann: Person, server: Server, room: str, bot: Bot) -> str:
    """Sends a message without giving the agents of this process a chance to run."""
    with httpx.Client() as connection:
        client = RestClient(base_url=server.url, api_key=ann.api_key, httpx_client=connection)
        sent = client.human_api_messages.send_my_chat_message(room, message=message("meanwhile", bot))
    return sent.data.id
