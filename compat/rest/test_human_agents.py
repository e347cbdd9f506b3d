"""A person's agents: registering, finding and deleting them."""

from __future__ import annotations

from typing import Any

import pytest
from band_rest.types import AgentRegisterRequest, MyAgent

from harness.cast import DESCRIPTION, UNKNOWN_ID, Bot, Cast, Person
from harness.refusals import INVALID, NOT_FOUND, UNAUTHORIZED, refused, unprocessable


async def test_a_registered_agent_gets_its_key_once(ann: Person, cast: Cast) -> None:
    made = await ann.rest.human_api_agents.register_my_agent(
        agent=AgentRegisterRequest(name="  Weather Agent ", description=DESCRIPTION)
    )

    agent, key = made.data.agent, made.data.credentials.api_key
    assert (agent.name, agent.description, agent.owner_id) == ("Weather Agent", DESCRIPTION, ann.id)
    assert key.startswith("band_a_")
    me = (await (await cast.rest(key)).agent_api_identity.get_agent_me()).data
    assert (me.id, me.name, me.description, me.inserted_at) == (agent.id, agent.name, DESCRIPTION, agent.inserted_at)
    assert key not in (await ann.raw.get("/api/v1/me/agents")).text


@pytest.mark.parametrize(
    ("name", "description", "field"),
    [
        ("", DESCRIPTION, "/agent/name"),
        ("   ", DESCRIPTION, "/agent/name"),
        ("x" * 101, DESCRIPTION, "/agent/name"),
        ("Writer", "", "/agent/description"),
        ("Writer", "too short", "/agent/description"),
        ("Writer", "x" * 2001, "/agent/description"),
    ],
)
async def test_an_agent_without_a_fit_name_and_description_is_refused(
    ann: Person, name: str, description: str, field: str
) -> None:
    refusal = await refused(
        ann.rest.human_api_agents.register_my_agent, agent=AgentRegisterRequest(name=name, description=description)
    )
    assert refusal == INVALID and refusal.names(field)
    assert (await ann.rest.human_api_agents.list_my_agents()).data == []


async def test_a_name_is_used_once_by_a_person_but_by_many_people(ann: Person, bot: Bot, cast: Cast) -> None:
    again = AgentRegisterRequest(name=bot.name, description=DESCRIPTION)

    refusal = await refused(ann.rest.human_api_agents.register_my_agent, agent=again)

    assert refusal == INVALID
    assert refusal.details == {"name": ["has already been taken"]}
    bob = await cast.person("bob")
    assert (await bob.rest.human_api_agents.register_my_agent(agent=again)).data.agent.name == bot.name


async def test_more_than_name_and_description_is_refused(ann: Person) -> None:
    agent = AgentRegisterRequest(name="Writer", description=DESCRIPTION, is_external=False)
    refusal = await refused(ann.rest.human_api_agents.register_my_agent, agent=agent)
    assert refusal == INVALID and refusal.names("/agent/is_external")


@pytest.fixture
async def agents(ann: Person, cast: Cast) -> dict[str, Bot]:
    return {name: await cast.bot(ann, name) for name in ("Delta", "alpha", "Charlie", "Bravo")}


async def test_agents_are_listed_newest_first_with_what_the_client_needs(ann: Person, agents: dict[str, Bot]) -> None:
    page = await ann.rest.human_api_agents.list_my_agents()

    assert [row.name for row in page.data] == ["Bravo", "Charlie", "alpha", "Delta"]
    row: MyAgent = page.data[0]
    assert (row.id, row.slug, row.description, row.is_external) == (agents["Bravo"].id, "bravo", DESCRIPTION, True)
    assert row.listed_in_directory is False
    metadata = page.metadata
    assert {one.param for one in metadata.available_filters} == {"name", "is_external", "listed_in_directory"}
    assert {one.param for one in metadata.sortable_fields} == {"name", "inserted_at", "updated_at"}
    assert (metadata.has_more, metadata.limit, metadata.next_cursor) == (False, 20, None)
    assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (1, 20, 4, 1)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"name": "LPH"}, ["alpha"]),
        ({"name": "%"}, []),
        ({"name": "_"}, []),
        ({"is_external": True}, ["Bravo", "Charlie", "alpha", "Delta"]),
        ({"is_external": False}, []),
        ({"listed_in_directory": True}, []),
        ({"listed_in_directory": False, "name": "a"}, ["Bravo", "Charlie", "alpha", "Delta"]),
        ({"order": "asc"}, ["Delta", "alpha", "Charlie", "Bravo"]),
        ({"sort": "updated_at", "order": "asc"}, ["Delta", "alpha", "Charlie", "Bravo"]),
        ({"sort": "inserted_at", "order": "desc"}, ["Bravo", "Charlie", "alpha", "Delta"]),
    ],
)
async def test_filters_and_orders(
    ann: Person, agents: dict[str, Bot], query: dict[str, Any], expected: list[str]
) -> None:
    assert [row.name for row in (await ann.rest.human_api_agents.list_my_agents(**query)).data] == expected


async def test_names_sort_forwards_and_backwards(ann: Person, agents: dict[str, Bot]) -> None:
    forwards = [row.name for row in (await ann.rest.human_api_agents.list_my_agents(sort="name", order="asc")).data]
    backwards = [row.name for row in (await ann.rest.human_api_agents.list_my_agents(sort="name", order="desc")).data]
    # Where a small letter sorts is the server's own affair.
    assert [name for name in forwards if name != "alpha"] == ["Bravo", "Charlie", "Delta"]
    assert sorted(forwards) == sorted(agents) and backwards == forwards[::-1]


@pytest.mark.parametrize("sort", ["name", "inserted_at", "updated_at"])
@pytest.mark.parametrize("order", ["asc", "desc"])
async def test_a_cursor_walks_every_order(ann: Person, agents: dict[str, Bot], sort: str, order: str) -> None:
    everyone = [row.id for row in (await ann.rest.human_api_agents.list_my_agents(sort=sort, order=order)).data]
    walked: list[str] = []
    cursor = None
    while True:
        page = await ann.rest.human_api_agents.list_my_agents(sort=sort, order=order, limit=3, cursor=cursor)
        walked += [row.id for row in page.data]
        assert page.metadata.has_more == (page.metadata.next_cursor is not None)
        assert page.metadata.total_count == 4
        cursor = page.metadata.next_cursor
        if cursor is None:
            break
    assert walked == everyone and len(walked) == 4


async def test_numbered_pages_still_work(ann: Person, agents: dict[str, Bot]) -> None:
    walked: list[str] = []
    for number in (1, 2):
        page = await ann.rest.human_api_agents.list_my_agents(page=number, page_size=3)
        metadata = page.metadata
        assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (number, 3, 4, 2)
        walked += [row.name for row in page.data]
    assert walked == ["Bravo", "Charlie", "alpha", "Delta"]


async def test_a_cursor_belongs_to_its_order_and_filter(ann: Person, agents: dict[str, Bot]) -> None:
    first = await ann.rest.human_api_agents.list_my_agents(limit=2)
    refusal = await refused(
        ann.rest.human_api_agents.list_my_agents, cursor=first.metadata.next_cursor, limit=2, name="a"
    )
    assert refusal == unprocessable("cursor_filter_mismatch")


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("sort", "colour"),
        ("order", "random"),
        ("limit", 0),
        ("page", 0),
        ("cursor", "no cursor"),
        ("is_external", "maybe"),
    ],
)
async def test_a_parameter_that_is_none_is_refused_by_name(ann: Person, parameter: str, value: Any) -> None:
    refusal = await refused(ann.rest.human_api_agents.list_my_agents, **{parameter: value})
    assert refusal == INVALID and refusal.names(f"/{parameter}")


async def test_an_agent_that_never_worked_is_deleted_and_its_key_dies(ann: Person, bot: Bot, cast: Cast) -> None:
    other = await cast.bot(ann)
    room = await ann.open_room(bot, other)

    gone = (await ann.rest.human_api_agents.delete_my_agent(bot.id)).data

    assert gone.model_dump() == {"id": bot.id, "name": bot.name, "description": DESCRIPTION, "executions_deleted": 0}
    assert await refused(bot.rest.agent_api_identity.get_agent_me) == UNAUTHORIZED
    assert await refused(ann.rest.human_api_agents.delete_my_agent, bot.id) == NOT_FOUND
    assert [row.id for row in (await ann.rest.human_api_agents.list_my_agents()).data] == [other.id]
    members = (await other.rest.agent_api_participants.list_agent_chat_participants(room)).data
    assert {member.id for member in members} == {ann.id, other.id}


async def test_an_agent_that_has_worked_goes_only_by_force(ann: Person, bot: Bot) -> None:
    room = await ann.open_room(bot)
    sent = (await ann.say(room, "please", bot)).id
    await bot.rest.agent_api_messages.mark_agent_message_processing(room, sent)
    await bot.rest.agent_api_messages.mark_agent_message_processed(room, sent)
    await bot.say(room, "done", ann)

    for force in (None, False):
        refusal = await refused(ann.rest.human_api_agents.delete_my_agent, bot.id, force=force)
        assert (refusal.error, refusal.status) == ("UnprocessableEntityError", 422)
    assert (await bot.rest.agent_api_identity.get_agent_me()).data.id == bot.id

    gone = (await ann.rest.human_api_agents.delete_my_agent(bot.id, force=True)).data

    assert gone.executions_deleted >= 1
    assert await refused(bot.rest.agent_api_identity.get_agent_me) == UNAUTHORIZED
    # What it said stays for those who heard it.
    assert (bot.id, f"@[[{ann.id}]] done") in await ann.texts(room)


async def test_only_ones_own_agents_can_be_deleted(ann: Person, cast: Cast) -> None:
    strangers = await cast.bot(await cast.person("stranger"))
    for nobody in (strangers.id, ann.id, UNKNOWN_ID, "nobody"):
        assert await refused(ann.rest.human_api_agents.delete_my_agent, nobody, force=True) == NOT_FOUND
    assert (await strangers.rest.agent_api_identity.get_agent_me()).data.id == strangers.id
