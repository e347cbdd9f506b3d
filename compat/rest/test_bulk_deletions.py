"""Deleting many rooms or agents by one request: the job, its results in order, and what survives a restart."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest
from band_rest.types import BulkDeletionJob

from harness.cast import UNKNOWN_ID, Bot, Cast, Person
from harness.contacts import befriend
from harness.refusals import INVALID, NOT_FOUND, UNAUTHORIZED, refused
from harness.server import Server
from harness.waiting import eventually


async def done(who: Person, accepted: Awaitable[Any]) -> BulkDeletionJob:
    """The job that a request started, once there is nothing left to do."""
    job = (await accepted).data

    async def over() -> BulkDeletionJob | None:
        shown = (await who.rest.human_api_bulk_deletions.show_my_bulk_deletion(job.id)).data
        return shown if shown.status in ("completed", "failed") else None

    finished = await eventually(over, what=f"the job {job.id} is over", within=30)
    assert [item.id for item in finished.results] == [item.id for item in job.results]
    assert finished.processed == finished.total == len(finished.results)
    assert finished.succeeded + finished.failed == finished.total
    assert job.inserted_at <= finished.started_at <= finished.completed_at
    return finished


def results(job: BulkDeletionJob) -> list[tuple[str, str | None]]:
    """What became of each item, in order."""
    return [(item.status, item.error.code if item.error else None) for item in job.results]


async def rooms(who: Person) -> set[str]:
    return {row.id for row in (await who.rest.human_api_chats.list_my_chats()).data}


async def test_rooms_are_deleted_in_the_order_of_the_request(ann: Person, bot: Bot) -> None:
    kept, *doomed = [await ann.open_room(bot) for _ in range(4)]

    job = await done(ann, ann.rest.human_api_bulk_deletions.bulk_delete_my_chats(ids=doomed))

    assert (job.resource_type, job.status, job.force) == ("chat", "completed", False)
    assert (job.total, job.succeeded, job.failed) == (3, 3, 0)
    assert [item.id for item in job.results] == doomed and results(job) == [("succeeded", None)] * 3
    assert await rooms(ann) == {kept}
    assert {row.id for row in (await bot.rest.agent_api_chats.list_agent_chats()).data} == {kept}


async def test_the_answer_comes_at_once_and_says_where_to_look(ann: Person) -> None:
    room = await ann.open_room()
    reply = await ann.raw.post("/api/v1/me/chats/bulk-delete", json={"ids": [room]})
    job = reply.json()["data"]
    assert reply.status_code == 202
    assert reply.headers["location"].endswith(f"/api/v1/me/bulk-deletions/{job['id']}")
    assert (await ann.raw.get(reply.headers["location"])).json()["data"]["id"] == job["id"]


async def test_what_cannot_be_deleted_fails_by_itself(ann: Person, bot: Bot, cast: Cast) -> None:
    bob = await cast.person("bob")
    await befriend(ann, bob)
    his = await bob.open_room(ann)
    hidden = await bob.open_room()
    agents = await bot.open_room()
    mine = await ann.open_room()

    job = await done(
        ann,
        ann.rest.human_api_bulk_deletions.bulk_delete_my_chats(
            ids=[his, "not-an-id", hidden, UNKNOWN_ID, agents, mine]
        ),
    )

    assert results(job) == [
        ("failed", "forbidden"),
        ("failed", "not_found"),
        ("failed", "not_found"),
        ("failed", "not_found"),
        ("succeeded", None),
        ("succeeded", None),
    ]
    assert (job.status, job.succeeded, job.failed) == ("completed", 2, 4)
    assert await rooms(ann) == {his} and await rooms(bob) == {his, hidden}


@pytest.mark.parametrize("force", [None, False, True])
async def test_an_agent_that_has_worked_goes_only_by_force(
    ann: Person, bot: Bot, cast: Cast, force: bool | None
) -> None:
    idle, foreign = await cast.bot(ann), await cast.bot(await cast.person("bob"))
    room = await ann.open_room(bot, idle)
    await bot.say(room, "I was here", ann)
    given = {} if force is None else {"force": force}

    job = await done(
        ann,
        ann.rest.human_api_bulk_deletions.bulk_delete_my_agents(ids=[bot.id, foreign.id, idle.id, "nobody"], **given),
    )

    worked = ("succeeded", None) if force else ("failed", "execution_history_exists")
    assert results(job) == [worked, ("failed", "not_found"), ("succeeded", None), ("failed", "not_found")]
    assert (job.resource_type, job.force) == ("agent", bool(force))
    assert await refused(idle.rest.agent_api_identity.get_agent_me) == UNAUTHORIZED
    assert (await foreign.rest.agent_api_identity.get_agent_me()).data.id == foreign.id
    left = {row.id for row in (await ann.rest.human_api_agents.list_my_agents()).data}
    assert left == (set() if force else {bot.id})


@pytest.mark.parametrize("path", ["chats", "agents"])
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ids": []},
        {"ids": "all"},
        {"ids": [7]},
        {"ids": [UNKNOWN_ID, UNKNOWN_ID]},
        {"ids": [f"00000000-0000-4000-8000-{number:012d}" for number in range(101)]},
        {"ids": [UNKNOWN_ID], "colour": "red"},
    ],
)
async def test_a_request_names_one_to_a_hundred_different_things(ann: Person, path: str, body: dict[str, Any]) -> None:
    reply = await ann.raw.post(f"/api/v1/me/{path}/bulk-delete", json=body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "validation_error")


@pytest.mark.parametrize("force", ["true", "false", 1])
async def test_force_is_true_or_false_and_no_word_for_it(ann: Person, bot: Bot, force: Any) -> None:
    refusal = await refused(ann.rest.human_api_bulk_deletions.bulk_delete_my_agents, ids=[bot.id], force=force)
    assert refusal == INVALID and refusal.names("/force")
    assert (await bot.rest.agent_api_identity.get_agent_me()).data.id == bot.id


async def test_a_hundred_at_once(ann: Person) -> None:
    ids = [f"00000000-0000-4000-8000-{number:012d}" for number in range(100)]
    job = await done(ann, ann.rest.human_api_bulk_deletions.bulk_delete_my_chats(ids=ids))
    assert (job.total, job.failed) == (100, 100) and {item.error.code for item in job.results} == {"not_found"}


async def test_a_job_is_its_owners_alone(ann: Person, cast: Cast) -> None:
    job = (await ann.rest.human_api_bulk_deletions.bulk_delete_my_chats(ids=[await ann.open_room()])).data
    bob = await cast.person("bob")
    assert await refused(bob.rest.human_api_bulk_deletions.show_my_bulk_deletion, job.id) == NOT_FOUND
    assert await refused(ann.rest.human_api_bulk_deletions.show_my_bulk_deletion, UNKNOWN_ID) == NOT_FOUND
    # Of a malformed id the sources say both.
    malformed = await refused(ann.rest.human_api_bulk_deletions.show_my_bulk_deletion, "not-an-id")
    assert malformed.status in (404, 422)


@pytest.mark.timeout(120)
async def test_a_job_survives_the_death_of_its_server(own_server: Server) -> None:
    async with Cast(own_server) as cast:
        ann = await cast.person()
        doomed = [await ann.open_room() for _ in range(60)]
        job = (await ann.rest.human_api_bulk_deletions.bulk_delete_my_chats(ids=doomed)).data
        own_server.kill()
        own_server.start()

        async def over() -> BulkDeletionJob | None:
            shown = (await ann.rest.human_api_bulk_deletions.show_my_bulk_deletion(job.id)).data
            return shown if shown.status == "completed" else None

        finished = await eventually(over, what="the job is taken up again", within=30)

        assert (finished.total, finished.succeeded) == (60, 60)
        assert await rooms(ann) == set()
