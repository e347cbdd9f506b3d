"""What agents remember of a person, as that person sees it, and what the person may do about it."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import UserMemory

from harness.cast import UNKNOWN_ID, Bot, Cast, Person
from harness.memories import remember
from harness.refusals import FORBIDDEN, INVALID, NOT_FOUND, Refusal, refused, unprocessable


@pytest.fixture
async def bob(cast: Cast) -> Person:
    return await cast.person("bob")


@pytest.fixture
async def weather(bob: Person, cast: Cast) -> Bot:
    """Bob's agent."""
    return await cast.bot(bob, "Weather")


async def memories(who: Person, **query: Any) -> list[UserMemory]:
    return (await who.rest.human_api_memories.list_user_memories(**query)).data


async def listed(who: Person, **query: Any) -> set[str]:
    return {row.id for row in await memories(who, **query)}


async def list_refused(who: Person, **query: Any) -> Refusal:
    return await refused(who.rest.human_api_memories.list_user_memories, **query)


async def read(who: Person, which: str) -> UserMemory:
    return (await who.rest.human_api_memories.get_user_memory(which)).data


async def test_a_memory_about_a_person_says_who_stored_it(ann: Person, weather: Bot) -> None:
    stored = await remember(weather, "Ann fears thunder", about=ann, metadata={"tags": ["fear"]})

    (row,) = await memories(ann)

    assert (row.id, row.content, row.thought) == (stored.id, "Ann fears thunder", "It came up")
    assert (row.system, row.type, row.segment, row.status) == ("long_term", "semantic", "user", "active")
    assert (row.scope, row.subject_id, row.subject_type) == ("subject", ann.id, "user")
    assert row.source_agent_id == weather.id and row.metadata == {"tags": ["fear"]}
    assert (row.chat_room_id, row.chat_room_title, row.chat_room_status, row.chat_room_type) == (None,) * 4
    assert row.inserted_at == row.updated_at == stored.inserted_at
    assert await read(ann, row.id) == row


async def test_names_are_given_where_they_may_be_seen(ann: Person, bot: Bot) -> None:
    about = await remember(bot, about=ann)
    orphan = await remember(bot, scope="agent", subject_id=UNKNOWN_ID)
    rows = {row.id: row for row in await memories(ann)}
    assert rows[about.id].source_agent_name == bot.name
    assert rows[about.id].subject_name is not None
    # The id is told all the same.
    row = rows[orphan.id]
    assert (row.subject_id, row.subject_name, row.subject_type) == (UNKNOWN_ID, None, None)


async def test_a_person_sees_what_is_about_them_shared_with_them_or_kept_by_their_agents(
    ann: Person, bot: Bot, bob: Person, weather: Bot, cast: Cast
) -> None:
    eve = await cast.person("eve")
    organization = await cast.organization(ann, bob)
    about = await remember(weather, "about Ann", about=ann)
    shared = await remember(weather, "for all", scope="organization")
    private = await remember(bot, "of Ann's agent", scope="agent")
    about_bob = await remember(bot, "about Bob", about=bob)
    of_weather = await remember(weather, "of Bob's agent", scope="agent", about=ann)

    assert await listed(ann) == await listed(ann, scope="all") == {about.id, shared.id, private.id}
    assert await listed(ann, scope="about_me") == {about.id}
    assert await listed(ann, scope="organization") == {shared.id}
    assert await listed(bob) == {shared.id, about_bob.id, of_weather.id}
    assert await listed(eve) == set()
    assert (await read(ann, shared.id)).organization_id == organization
    assert (await read(ann, private.id)).organization_id is None
    # Whatever may not be seen does not exist (an intended difference: the hosted platform answers 403).
    for who, hidden in ((ann, about_bob), (ann, of_weather), (bob, about), (bob, private), (eve, shared)):
        assert await refused(who.rest.human_api_memories.get_user_memory, hidden.id) == NOT_FOUND


async def test_no_memory_belongs_to_a_room(ann: Person, bot: Bot) -> None:
    # None of the two APIs can store one for a room, so both filters find nothing, and refuse nothing.
    await remember(bot, about=ann)
    room = await ann.open_room(bot)
    assert await listed(ann, scope="room") == await listed(ann, chat_room_id=room) == set()


async def test_every_filter_narrows(ann: Person, bot: Bot, weather: Bot) -> None:
    fact = await remember(bot, "Ann likes tea", about=ann)
    habit = await remember(bot, "Boil the water", system="working", type="procedural", segment="tool")
    sight = await remember(weather, "A red door", system="sensory", type="iconic", segment="guideline", about=ann)

    assert await listed(ann, system="working") == {habit.id}
    assert await listed(ann, type="iconic") == {sight.id}
    assert await listed(ann, segment="user") == {fact.id}
    assert await listed(ann, source_agent_id=weather.id) == {sight.id}
    assert await listed(ann, source_agent_id=UNKNOWN_ID) == set()
    assert await listed(ann, content_query="TEA likes") == {fact.id}
    assert await listed(ann, content_query="door", scope="about_me") == {sight.id}


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("scope", "agent"),
        ("system", "legacy"),
        ("type", "fuzzy"),
        ("segment", "nobody"),
        ("status", "lost"),
        ("source_agent_id", "somebody"),
        ("chat_room_id", "somewhere"),
        ("limit", 0),
        ("page", 0),
        ("page_size", 0),
        ("cursor", "damaged"),
    ],
)
async def test_a_parameter_that_is_none_is_refused_by_name(ann: Person, parameter: str, value: Any) -> None:
    refusal = await list_refused(ann, **{parameter: value})
    assert refusal == INVALID and refusal.names(f"/{parameter}")


@pytest.mark.parametrize(("how", "status"), [("supersede", "superseded"), ("archive", "archived")])
async def test_a_person_puts_away_what_is_about_them(ann: Person, weather: Bot, how: str, status: str) -> None:
    stored, kept = await remember(weather, about=ann), await remember(weather, about=ann)

    gone = (await getattr(ann.rest.human_api_memories, f"{how}_user_memory")(stored.id)).data

    assert (gone.id, gone.status) == (stored.id, status)
    assert gone.inserted_at == stored.inserted_at and gone.updated_at > stored.inserted_at
    assert await listed(ann) == {kept.id}
    assert await listed(ann, status=status) == {stored.id}
    assert await listed(ann, status="all") == {stored.id, kept.id}
    # The agent sees it in the same state.
    assert (await weather.rest.agent_api_memories.get_agent_memory(stored.id)).data.status == status


async def test_what_is_archived_can_be_restored_and_nothing_else(ann: Person, weather: Bot) -> None:
    stored = await remember(weather, about=ann)
    mine = ann.rest.human_api_memories
    assert (await refused(mine.restore_user_memory, stored.id)).status == 422
    archived = (await mine.archive_user_memory(stored.id)).data

    back = (await mine.restore_user_memory(stored.id)).data

    assert back.status == "active" and back.updated_at >= archived.updated_at
    assert await listed(ann) == {stored.id}
    await mine.supersede_user_memory(stored.id)
    assert (await refused(mine.restore_user_memory, stored.id)).status == 422


async def test_what_an_agent_has_archived_its_owner_can_restore(ann: Person, bot: Bot) -> None:
    stored = await remember(bot)
    await bot.rest.agent_api_memories.archive_agent_memory(stored.id)
    assert (await ann.rest.human_api_memories.restore_user_memory(stored.id)).data.status == "active"
    assert [row.id for row in (await bot.rest.agent_api_memories.list_agent_memories()).data] == [stored.id]


async def test_what_is_deleted_is_gone_for_everybody(ann: Person, weather: Bot) -> None:
    stored = await remember(weather, about=ann)

    assert await ann.rest.human_api_memories.delete_user_memory(stored.id) is None

    assert await listed(ann, status="all") == set()
    assert await refused(ann.rest.human_api_memories.get_user_memory, stored.id) == NOT_FOUND
    assert await refused(ann.rest.human_api_memories.delete_user_memory, stored.id) == NOT_FOUND
    assert await refused(weather.rest.agent_api_memories.get_agent_memory, stored.id) == NOT_FOUND


async def test_a_deletion_answers_without_a_body(ann: Person, bot: Bot) -> None:
    stored = await remember(bot)
    reply = await ann.raw.delete(f"/api/v1/me/memories/{stored.id}")
    assert (reply.status_code, reply.content) == (204, b"")


async def test_what_one_may_read_one_may_not_always_change(ann: Person, bob: Person, weather: Bot, cast: Cast) -> None:
    await cast.organization(ann, bob)
    shared = await remember(weather, scope="organization")
    hidden = await remember(weather, scope="agent")
    mine = ann.rest.human_api_memories
    changes = (
        mine.supersede_user_memory,
        mine.archive_user_memory,
        mine.restore_user_memory,
        mine.delete_user_memory,
    )
    for change in changes:
        assert await refused(change, shared.id) == FORBIDDEN
        for nothing in (hidden.id, UNKNOWN_ID, "not-an-id"):
            assert await refused(change, nothing) == NOT_FOUND
    assert (await read(ann, shared.id)).status == "active"


async def test_a_cursor_walks_all_of_them_newest_first(ann: Person, bot: Bot) -> None:
    stored = [(await remember(bot, f"number {number}")).id for number in range(5)]
    walked, cursor = [], None
    while True:
        page = await ann.rest.human_api_memories.list_user_memories(limit=2, cursor=cursor)
        walked += [row.id for row in page.data]
        assert page.metadata.has_more == (page.metadata.next_cursor is not None)
        cursor = page.metadata.next_cursor
        if cursor is None:
            break
    assert walked == stored[::-1]


async def test_numbered_pages_hold_all_of_them(ann: Person, bot: Bot) -> None:
    stored = [(await remember(bot, f"number {number}")).id for number in range(3)]
    first, second = [await ann.rest.human_api_memories.list_user_memories(page=page, page_size=2) for page in (1, 2)]
    assert [row.id for row in first.data + second.data] == stored[::-1]
    metadata = second.metadata
    assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (2, 2, 3, 2)


async def test_the_metadata_is_there_under_both_names(ann: Person, bot: Bot) -> None:
    await remember(bot)
    for query in ({}, {"limit": 1}, {"page": 1, "page_size": 1}):
        reply = (await ann.raw.get("/api/v1/me/memories", params=query)).json()
        assert reply["meta"] == reply["metadata"] != {}


async def test_a_cursor_belongs_to_its_filters_and_its_way_of_paging(ann: Person, bot: Bot) -> None:
    for _ in range(2):
        await remember(bot)
    first = await ann.rest.human_api_memories.list_user_memories(limit=1)
    cursor = first.metadata.next_cursor
    assert await list_refused(ann, limit=1, cursor=cursor, segment="user") == unprocessable("cursor_filter_mismatch")
    assert (await list_refused(ann, cursor=cursor, page=1)).status == 422
    assert (await list_refused(ann, limit=1, page_size=1)).status == 422


async def test_what_an_agent_kept_to_itself_goes_with_it_and_the_rest_stays(
    ann: Person, bob: Person, weather: Bot, cast: Cast
) -> None:
    await cast.organization(ann, bob)
    about = await remember(weather, about=ann)
    shared = await remember(weather, scope="organization")
    private = await remember(weather, scope="agent")

    await bob.rest.human_api_agents.delete_my_agent(weather.id, force=True)

    rows = {row.id: row for row in await memories(ann)}
    assert rows.keys() == {about.id, shared.id}
    assert {(row.source_agent_id, row.source_agent_name) for row in rows.values()} == {(None, None)}
    assert private.id not in await listed(bob, status="all")
