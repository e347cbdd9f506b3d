"""Stop, play and interrupt: who may, and how a stop shows on every route that it closes."""

from __future__ import annotations

import pytest
from band_rest.types import ChatEventRequest

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, message
from harness.contacts import befriend
from harness.control import executions, interrupt, play, stop
from harness.files import put
from harness.refusals import FORBIDDEN, NOT_FOUND, raw, refused, refused_raw

STOPPED = "execution is stopped"


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


async def test_an_agent_has_an_execution_in_each_of_its_rooms(ann: Person, bot: Bot, room: str) -> None:
    other = await ann.open_room(bot)
    rows = await executions(ann, bot)
    assert len({row["id"] for row in rows}) == len(rows) == 2
    assert {row["chat_room_id"] for row in rows if "chat_room_id" in row} <= {room, other}
    await ann.remove(other, bot)
    assert len(await executions(ann, bot)) == 1


async def test_a_stopped_agent_says_nothing(ann: Person, bot: Bot, room: str) -> None:
    await stop(ann, room)

    refusal = await refused(bot.rest.agent_api_messages.create_agent_chat_message, room, message=message("Hi", ann))
    assert refusal == FORBIDDEN and STOPPED in refusal.message.lower()
    event = ChatEventRequest(content="thinking", message_type="thought")
    refusal = await refused(bot.rest.agent_api_events.create_agent_chat_event, room, event=event)
    assert refusal == FORBIDDEN and STOPPED in refusal.message.lower()
    assert await ann.messages(room) == []

    await play(ann, room)
    await bot.say(room, "Hi", ann)
    await bot.rest.agent_api_events.create_agent_chat_event(room, event=event)


async def test_a_stopped_agent_gets_nothing_and_marks_nothing(ann: Person, bot: Bot, room: str) -> None:
    begun = (await ann.say(room, "begun before", bot)).id
    await bot.rest.agent_api_messages.mark_agent_message_processing(room, begun)
    await stop(ann, room)
    waiting = (await ann.say(room, "meanwhile", bot)).id
    before = [await ann.delivery(room, sent, bot) for sent in (begun, waiting)]

    place = f"/api/v1/agent/chats/{room}/messages"
    for reply in (
        await bot.raw.get(f"{place}/next"),
        await bot.raw.post(f"{place}/{waiting}/processing"),
        await bot.raw.post(f"{place}/{begun}/processed"),
        await bot.raw.post(f"{place}/{begun}/failed", json={"error": "no luck"}),
    ):
        assert (reply.status_code, reply.content) == (204, b""), reply.url

    # The generated client tells its caller the same by returning nothing.
    assert await bot.next(room) is None
    assert await bot.rest.agent_api_messages.mark_agent_message_processing(room, waiting) is None
    assert [await ann.delivery(room, sent, bot) for sent in (begun, waiting)] == before

    await play(ann, room)
    assert (await bot.next(room)).id == begun, "what was under way comes first"
    marks = bot.rest.agent_api_messages
    for sent in (begun, waiting):
        await marks.mark_agent_message_processing(room, sent)
        assert (await marks.mark_agent_message_processed(room, sent)).data.success is True
    assert await bot.next(room) is None


async def test_a_stopped_agent_is_told_so_when_it_says_that_it_works(ann: Person, bot: Bot, room: str) -> None:
    report = bot.rest.agent_api_activity.report_agent_chat_activity
    await stop(ann, room)
    assert (await report(room, working=True)).data.working is False
    assert (await report(room, working=False)).data.working is False
    await play(ann, room)
    assert (await report(room, working=True)).data.working is True


async def test_a_stopped_agent_may_still_look_around_and_keep_the_board(ann: Person, bot: Bot, room: str) -> None:
    sent = (await ann.say(room, "hello", bot)).id
    await stop(ann, room)
    assert (await bot.rest.agent_api_chats.get_agent_chat(room)).data.id == room
    assert [row.id for row in (await bot.rest.agent_api_context.get_agent_chat_context(room)).data] == [sent]
    assert [row.id for row in (await bot.rest.agent_api_messages.list_agent_messages(room)).data] == [sent]
    assert len((await bot.rest.agent_api_participants.list_agent_chat_participants(room)).data) == 2
    assert (await bot.rest.agent_api_chat_tasks.list_chat_tasks(room)).data == []
    # The board and the files have no part in what is stopped.
    task = (await bot.rest.agent_api_chat_tasks.create_chat_task(room, subject="Paint the door")).data
    assert task.number == 1
    assert (await put(bot, room, b"notes")).status_code == 201


async def test_a_stop_is_for_all_agents_of_one_room(ann: Person, bot: Bot, room: str, cast: Cast) -> None:
    other = await cast.bot(ann)
    await ann.add(room, other)
    elsewhere = await ann.open_room(bot)

    await stop(ann, room)

    for one in (bot, other):
        refusal = await refused(one.rest.agent_api_messages.create_agent_chat_message, room, message=message("Hi", ann))
        assert refusal == FORBIDDEN
    await bot.say(elsewhere, "Here I am", ann)
    # People talk on.
    await ann.say(room, "wait", bot, other)


async def test_stop_and_play_may_be_repeated(ann: Person, bot: Bot, room: str) -> None:
    for _ in range(2):
        await stop(ann, room)
    for _ in range(2):
        await play(ann, room)
    await bot.say(room, "Hi", ann)


@pytest.mark.parametrize("signal", ["stop", "play"])
async def test_only_an_owner_of_the_room_stops_its_agents(
    ann: Person, bot: Bot, room: str, cast: Cast, signal: str
) -> None:
    path = f"/api/v1/me/chats/{room}/agents/{signal}"
    friend = await cast.person("friend")
    await befriend(ann, friend)
    await ann.add(room, friend)
    assert refused_raw(await friend.raw.post(path)) == raw(FORBIDDEN)
    stranger = await cast.person("stranger")
    assert refused_raw(await stranger.raw.post(path)) == raw(NOT_FOUND)
    assert refused_raw(await bot.raw.post(path)) == raw(FORBIDDEN)
    for nowhere in (UNKNOWN_ID, "not-an-id"):
        assert refused_raw(await ann.raw.post(f"/api/v1/me/chats/{nowhere}/agents/{signal}")) == raw(NOT_FOUND)
    await bot.say(room, "I am free", ann)


async def test_an_execution_is_interrupted_by_its_owner_alone(ann: Person, bot: Bot, room: str, cast: Cast) -> None:
    execution, *_ = await executions(ann, bot)
    other = await cast.bot(ann)
    stranger = await cast.person("stranger")

    await interrupt(ann, bot, execution["id"])
    # Nothing is closed by it.
    await bot.say(room, "I go on", ann)

    path = f"/api/v1/me/agents/{bot.id}/executions"
    assert refused_raw(await stranger.raw.get(path)) == raw(NOT_FOUND)
    assert refused_raw(await stranger.raw.post(f"{path}/{execution['id']}/interrupt")) == raw(NOT_FOUND)
    assert refused_raw(await bot.raw.get(path)) == raw(FORBIDDEN)
    for agent, which in ((bot.id, UNKNOWN_ID), (bot.id, "not-an-id"), (other.id, execution["id"]), (UNKNOWN_ID, "x")):
        reply = await ann.raw.post(f"/api/v1/me/agents/{agent}/executions/{which}/interrupt")
        assert refused_raw(reply) == raw(NOT_FOUND)
    for nobody in (UNKNOWN_ID, "not-an-id"):
        assert refused_raw(await ann.raw.get(f"/api/v1/me/agents/{nobody}/executions")) == raw(NOT_FOUND)
