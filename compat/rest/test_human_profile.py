"""A person's own profile."""

from __future__ import annotations

import pytest
from band_rest.human_api_profile.types import UpdateMyProfileRequestUser as Update

from harness.cast import Bot, Cast, Person
from harness.refusals import INVALID, refused


async def test_a_person_reads_and_changes_their_name(ann: Person, bot: Bot) -> None:
    before = (await ann.rest.human_api_profile.get_my_profile()).data
    assert (before.id, before.handle, before.role) == (ann.id, ann.handle, "user")

    changed = (await ann.rest.human_api_profile.update_my_profile(user=Update(first_name="Ann", last_name="Lee"))).data
    assert changed == before.model_copy(update={"first_name": "Ann", "last_name": "Lee"})
    assert (await ann.rest.human_api_profile.get_my_profile()).data == changed

    # The agents of a person see the new name at once.
    peers = (await bot.rest.agent_api_peers.list_agent_peers(page_size=100)).data
    assert [peer.name for peer in peers if peer.id == ann.id] == ["Ann Lee"]


async def test_only_what_is_sent_changes(ann: Person) -> None:
    await ann.rest.human_api_profile.update_my_profile(user=Update(first_name="Ann", last_name="Lee"))
    changed = (await ann.rest.human_api_profile.update_my_profile(user=Update(last_name="Ray"))).data
    assert (changed.first_name, changed.last_name) == ("Ann", "Ray")
    assert (await ann.rest.human_api_profile.update_my_profile(user=Update())).data == changed


async def test_the_owner_of_the_server_is_called_owner(cast: Cast) -> None:
    assert (await cast.owner()).handle == "owner"


@pytest.mark.parametrize("field", ["handle", "email", "role"])
async def test_what_is_not_writable_is_refused_by_name(ann: Person, field: str) -> None:
    refusal = await refused(ann.rest.human_api_profile.update_my_profile, user=Update(**{field: "owner"}))
    assert refusal == INVALID and refusal.names(f"/user/{field}")
    assert (await ann.rest.human_api_profile.get_my_profile()).data.handle == ann.handle
