"""What an agent remembers: storing, finding and putting away, and who may see it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pytest

from harness.cast import UNKNOWN_ID, Bot, Cast, Person
from harness.memories import memory, remember
from harness.refusals import (
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    Refusal,
    refused,
    refused_raw,
    unprocessable,
)

TYPES = {
    "sensory": {"iconic", "echoic", "haptic"},
    "working": {"episodic", "semantic", "procedural"},
    "long_term": {"episodic", "semantic", "procedural"},
}
SEGMENTS = ("user", "agent", "tool", "guideline")


async def listed(bot: Bot, **query: Any) -> set[str]:
    return {row.id for row in (await bot.rest.agent_api_memories.list_agent_memories(**query)).data}


async def store_refused(bot: Bot, **fields: Any) -> Refusal:
    return await refused(bot.rest.agent_api_memories.create_agent_memory, memory=memory(**fields))


async def list_refused(bot: Bot, **query: Any) -> Refusal:
    return await refused(bot.rest.agent_api_memories.list_agent_memories, **query)


async def test_what_is_stored_comes_back(bot: Bot) -> None:
    metadata = {"tags": ["drinks", "ann"], "references": ["message 7"]}
    stored = await remember(bot, "Ann likes tea", system="working", type="episodic", segment="user", metadata=metadata)

    assert (stored.content, stored.thought) == ("Ann likes tea", "It came up")
    assert (stored.system, stored.type, stored.segment, stored.status) == ("working", "episodic", "user", "active")
    assert stored.metadata == metadata
    assert (stored.scope, stored.subject_id, stored.organization_id) == ("agent", None, None)
    assert stored.source_agent_id == bot.id
    assert (await bot.rest.agent_api_memories.get_agent_memory(stored.id)).data == stored
    assert (await bot.rest.agent_api_memories.list_agent_memories()).data == [stored]


async def test_the_scope_follows_from_the_subject(bot: Bot, ann: Person) -> None:
    about = await remember(bot, about=ann)
    assert (about.scope, about.subject_id) == ("subject", ann.id)
    private = await remember(bot, scope="agent", about=ann)
    assert (private.scope, private.organization_id) == ("agent", None)


async def test_a_type_belongs_to_its_systems(bot: Bot) -> None:
    every_type = set().union(*TYPES.values())
    for (system, fitting), kind in itertools.product(TYPES.items(), sorted(every_type)):
        if kind in fitting:
            stored = await remember(bot, system=system, type=kind)
            assert (stored.system, stored.type) == (system, kind)
        else:
            refusal = await store_refused(bot, system=system, type=kind)
            assert refusal == INVALID and refusal.names("/memory/type")
    for segment in SEGMENTS:
        assert (await remember(bot, segment=segment)).segment == segment


@pytest.mark.parametrize("field", ["system", "type", "segment", "scope"])
async def test_a_word_that_is_none_of_its_kind_is_refused_by_name(bot: Bot, field: str) -> None:
    refusal = await store_refused(bot, **{field: "nonsense"})
    assert refusal == INVALID and refusal.names(f"/memory/{field}")


@pytest.mark.parametrize("field", ["content", "system", "type", "segment", "thought"])
async def test_nothing_may_be_missing(bot: Bot, field: str) -> None:
    whole = {"content": "x", "system": "working", "type": "semantic", "segment": "user", "thought": "y"}
    del whole[field]
    refusal = refused_raw(await bot.raw.post("/api/v1/agent/memories", json={"memory": whole}))
    assert (refusal.status, refusal.code) == (422, "validation_error")
    assert refusal.names(f"/memory/{field}")


async def test_a_memory_needs_something_to_see_and_a_subject_where_it_says_so(bot: Bot) -> None:
    for blank in ("", "  \n", "\u200b"):
        refusal = await store_refused(bot, content=blank)
        assert refusal == INVALID and refusal.names("/memory/content")
    refusal = await store_refused(bot, scope="subject")
    assert refusal == INVALID and refusal.names("/memory/subject_id")
    refusal = await store_refused(bot, scope="subject", subject_id="somebody")
    assert refusal == INVALID and refusal.names("/memory/subject_id")
    refusal = await store_refused(bot, colour="red")
    assert refusal == INVALID and refusal.names("/memory/colour")
    assert await listed(bot, status="all") == set()


async def test_without_an_organization_nothing_is_shared_with_one(bot: Bot) -> None:
    # band-sdk turns this code into advice for the model, when storing and when listing.
    nobody = unprocessable("org_scope_requires_organization")
    assert await store_refused(bot, scope="organization") == nobody
    assert await list_refused(bot, scope="organization") == nobody
    assert await list_refused(bot, memory_scope="org") == nobody


@dataclass(frozen=True)
class Company:
    """Ann and Bob in one organization, an agent each, and Eve's agent outside."""

    id: str
    ann: Person
    bob: Person
    mine: Bot
    colleague: Bot
    outsider: Bot


@pytest.fixture
async def company(ann: Person, bot: Bot, cast: Cast) -> Company:
    bob, eve = await cast.person("bob"), await cast.person("eve")
    organization = await cast.organization(ann, bob)
    return Company(organization, ann, bob, bot, await cast.bot(bob), await cast.bot(eve))


async def test_what_is_shared_with_the_organization_is_its_agents_to_read(company: Company) -> None:
    shared = await remember(company.mine, scope="organization")
    assert (shared.scope, shared.organization_id, shared.subject_id) == ("organization", company.id, None)

    read = company.colleague.rest.agent_api_memories
    assert await listed(company.colleague) == set(), "by default only what the agent stored itself"
    assert (await read.list_agent_memories(memory_scope="org")).data == [shared]
    assert (await read.get_agent_memory(shared.id)).data == shared
    assert await refused(company.outsider.rest.agent_api_memories.get_agent_memory, shared.id) == NOT_FOUND
    assert (await list_refused(company.outsider, memory_scope="org")).status == 422


async def test_a_subject_is_reached_only_by_its_id(company: Company) -> None:
    about_ann = await remember(company.mine, "Ann is allergic to nuts", about=company.ann)
    about_bob = await remember(company.mine, "Bob is not", about=company.bob)
    of_colleague = company.colleague

    assert await listed(of_colleague, memory_scope="org") == set()
    one = {"memory_scope": "org", "scope": "subject", "subject_id": company.ann.id}
    assert await listed(of_colleague, **one) == {about_ann.id}
    assert (await of_colleague.rest.agent_api_memories.get_agent_memory(about_ann.id)).data == about_ann
    # Without the id nothing about anybody, whether that is refused or answered with nothing.
    reply = await of_colleague.raw.get("/api/v1/agent/memories?memory_scope=org&scope=subject")
    assert reply.status_code == 422 or not reply.json()["data"]
    assert about_bob.id not in reply.text and about_ann.id not in reply.text
    assert await refused(company.outsider.rest.agent_api_memories.get_agent_memory, about_ann.id) == NOT_FOUND


async def test_what_an_agent_keeps_to_itself_no_other_agent_ever_sees(company: Company, cast: Cast) -> None:
    private = await remember(company.mine, "A secret", scope="agent")
    about = await remember(company.mine, "A secret about Bob", scope="agent", about=company.bob)
    sibling = await cast.bot(company.ann)
    queries = [
        {"memory_scope": whose, "scope": scope, "subject_id": subject, "content_query": words, "status": "all"}
        for whose in ("me", "org")
        for scope in (None, "agent", "subject", "organization", "all")
        for subject in (None, company.bob.id)
        for words in (None, "secret")
    ]
    for other in (company.colleague, sibling):
        for query in queries:
            query = {name: value for name, value in query.items() if value is not None}
            assert "secret" not in (await other.raw.get("/api/v1/agent/memories", params=query)).text, query
        for hidden in (private, about):
            memories = other.rest.agent_api_memories
            for method in (memories.get_agent_memory, memories.supersede_agent_memory, memories.archive_agent_memory):
                assert await refused(method, hidden.id) == NOT_FOUND
    assert await listed(company.mine) == {private.id, about.id}


async def test_only_the_agent_that_stored_it_puts_a_memory_away(company: Company) -> None:
    shared = await remember(company.mine, scope="organization")
    others = company.colleague.rest.agent_api_memories
    assert await refused(others.supersede_agent_memory, shared.id) == FORBIDDEN
    assert await refused(others.archive_agent_memory, shared.id) == FORBIDDEN
    assert (await others.get_agent_memory(shared.id)).data.status == "active"


@pytest.mark.parametrize(("how", "status"), [("supersede", "superseded"), ("archive", "archived")])
async def test_what_is_put_away_is_hidden_unless_asked_for(bot: Bot, how: str, status: str) -> None:
    stored, kept = await remember(bot), await remember(bot)

    gone = (await getattr(bot.rest.agent_api_memories, f"{how}_agent_memory")(stored.id)).data

    assert (gone.id, gone.content, gone.status) == (stored.id, stored.content, status)
    assert await listed(bot) == await listed(bot, status="active") == {kept.id}
    assert await listed(bot, status=status) == {stored.id}
    assert await listed(bot, status="all") == {stored.id, kept.id}
    assert (await bot.rest.agent_api_memories.get_agent_memory(stored.id)).data.status == status


async def test_a_memory_that_does_not_exist_is_not_found(bot: Bot) -> None:
    memories = bot.rest.agent_api_memories
    for method in (memories.get_agent_memory, memories.supersede_agent_memory, memories.archive_agent_memory):
        for nothing in (UNKNOWN_ID, "not-an-id"):
            assert await refused(method, nothing) == NOT_FOUND


async def test_every_filter_narrows(bot: Bot, ann: Person, cast: Cast) -> None:
    bob = await cast.person("bob")
    fact = await remember(bot, "Ann likes tea", about=ann)
    habit = await remember(bot, "Boil the water first", system="working", type="procedural", segment="tool")
    sight = await remember(bot, "A red door", system="sensory", type="iconic", segment="guideline", about=bob)

    assert await listed(bot) == await listed(bot, scope="all") == {fact.id, habit.id, sight.id}
    assert await listed(bot, memory_scope="me", scope="agent") == {habit.id}
    assert await listed(bot, scope="subject", subject_id=ann.id) == {fact.id}
    assert await listed(bot, subject_id=bob.id) == {sight.id}
    assert await listed(bot, system="working") == {habit.id}
    assert await listed(bot, type="iconic") == {sight.id}
    assert await listed(bot, segment="user") == {fact.id}
    assert await listed(bot, system="long_term", segment="tool") == set()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tea", ["Ann likes Tea", "Thé vert, tea for short"]),
        ("TEA ann", ["Ann likes Tea"]),
        ("the", ["Thé vert, tea for short"]),
        ("likes vert", []),
        ("%", []),
        ("coffee", []),
    ],
)
async def test_words_are_found_whatever_their_case_and_accents(bot: Bot, query: str, expected: list[str]) -> None:
    for content in ("Ann likes Tea", "Thé vert, tea for short", "Nothing"):
        await remember(bot, content)
    found = (await bot.rest.agent_api_memories.list_agent_memories(content_query=query)).data
    assert sorted(row.content for row in found) == sorted(expected)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("scope", "everyone"),
        ("memory_scope", "you"),
        ("system", "legacy"),
        ("type", "fuzzy"),
        ("segment", "nobody"),
        ("status", "lost"),
        ("subject_id", "somebody"),
        ("limit", 0),
        ("page", 0),
        ("page_size", 0),
        ("cursor", "damaged"),
    ],
)
async def test_a_parameter_that_is_none_is_refused_by_name(bot: Bot, parameter: str, value: Any) -> None:
    refusal = await list_refused(bot, **{parameter: value})
    assert refusal == INVALID and refusal.names(f"/{parameter}")


async def test_a_cursor_walks_all_of_them(bot: Bot) -> None:
    stored = [(await remember(bot, f"number {number}")).id for number in range(5)]
    pages, cursor = [], None
    while True:
        page = await bot.rest.agent_api_memories.list_agent_memories(limit=2, cursor=cursor)
        pages.append([row.id for row in page.data])
        assert page.metadata.has_more == (page.metadata.next_cursor is not None)
        cursor = page.metadata.next_cursor
        if cursor is None:
            break
    assert [len(page) for page in pages] == [2, 2, 1]
    walked = [one for page in pages for one in page]
    assert walked in (stored, stored[::-1])


async def test_numbered_pages_hold_all_of_them(bot: Bot) -> None:
    stored = {(await remember(bot, f"number {number}")).id for number in range(3)}
    first, second = [await bot.rest.agent_api_memories.list_agent_memories(page=page, page_size=2) for page in (1, 2)]
    assert (len(first.data), len(second.data)) == (2, 1)
    assert {row.id for row in first.data + second.data} == stored
    metadata = second.metadata
    assert (metadata.page, metadata.page_size, metadata.total_count, metadata.total_pages) == (2, 2, 3, 2)
    most = await bot.rest.agent_api_memories.list_agent_memories(page=1, page_size=51)
    assert most.metadata.page_size == 50


async def test_what_band_sdk_sends_is_enough(bot: Bot) -> None:
    # It names the size of a page and no page.
    await remember(bot)
    page = await bot.rest.agent_api_memories.list_agent_memories(page_size=50)
    assert len(page.data) == 1 and page.metadata.page_size == 50


async def test_the_metadata_is_there_under_both_names(bot: Bot) -> None:
    await remember(bot)
    for query in ({}, {"limit": 1}, {"page": 1, "page_size": 1}):
        reply = (await bot.raw.get("/api/v1/agent/memories", params=query)).json()
        assert reply["meta"] == reply["metadata"] != {}


@pytest.mark.parametrize("page", [{"page": 1}, {"page_size": 5}])
async def test_the_two_ways_of_paging_do_not_mix(bot: Bot, page: dict[str, int]) -> None:
    for _ in range(2):
        await remember(bot)
    first = await bot.rest.agent_api_memories.list_agent_memories(limit=1)
    assert (await list_refused(bot, cursor=first.metadata.next_cursor, **page)).status == 422
    assert (await list_refused(bot, limit=1, **page)).status == 422


async def test_a_cursor_belongs_to_its_filters(bot: Bot, ann: Person) -> None:
    for _ in range(2):
        await remember(bot, about=ann)
    first = await bot.rest.agent_api_memories.list_agent_memories(limit=1, segment="user")
    cursor = first.metadata.next_cursor
    mismatch = unprocessable("cursor_filter_mismatch")
    assert await list_refused(bot, limit=1, cursor=cursor) == mismatch
    assert await list_refused(bot, limit=1, cursor=cursor, segment="tool") == mismatch
    assert await list_refused(bot, limit=1, cursor=cursor, segment="user", content_query="tea") == mismatch
    second = await bot.rest.agent_api_memories.list_agent_memories(limit=1, segment="user", cursor=cursor)
    assert len(second.data) == 1 and second.data != first.data


async def test_a_strangers_cursor_is_of_no_use(bot: Bot, cast: Cast, ann: Person) -> None:
    other = await cast.bot(ann)
    mine = {(await remember(bot)).id for _ in range(2)}
    cursor = (await bot.rest.agent_api_memories.list_agent_memories(limit=1)).metadata.next_cursor
    reply = await other.raw.get("/api/v1/agent/memories", params={"limit": 1, "cursor": cursor})
    assert reply.status_code == 422 or reply.json()["data"] == []
    assert not any(one in reply.text for one in mine)
