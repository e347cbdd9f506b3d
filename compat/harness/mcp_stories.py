"""Every tool that `band-mcp` has, called once: the same story for `band-mcp` and for our own programs."""

from __future__ import annotations

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, token
from harness.contacts import ask, befriend
from harness.mcp_program import Tools
from harness.memories import remember

ALL_GROUPS = ("--tools", "contacts,memory,tasks")

HEALTH = {"health_check"}
# Each tool, and whether it takes a room.
AGENT_CHAT = {
    "band_send_message": True,
    "band_send_event": True,
    "band_no_reply": False,
    "band_add_participant": True,
    "band_remove_participant": True,
    "band_lookup_peers": True,
    "band_get_participants": True,
    "band_create_chatroom": False,
}
AGENT_GROUPS = {
    "band_list_contacts": False,
    "band_add_contact": False,
    "band_remove_contact": False,
    "band_list_contact_requests": False,
    "band_respond_contact_request": False,
    "band_list_memories": False,
    "band_store_memory": False,
    "band_get_memory": False,
    "band_supersede_memory": False,
    "band_archive_memory": False,
    "band_list_tasks": True,
    "band_create_task": True,
    "band_get_task": True,
    "band_update_task": True,
    "band_get_task_history": True,
    "band_get_board": True,
    "band_set_board": True,
}
AGENT = AGENT_CHAT | AGENT_GROUPS
HUMAN_CHAT = {
    "band_list_my_agents",
    "band_register_my_agent",
    "band_list_my_chats",
    "band_create_my_chat_room",
    "band_get_my_chat_room",
    "band_list_my_chat_messages",
    "band_send_my_chat_message",
    "band_list_my_chat_participants",
    "band_add_my_chat_participant",
    "band_remove_my_chat_participant",
    "band_get_my_profile",
    "band_update_my_profile",
    "band_list_my_peers",
}
HUMAN_GROUPS = {
    "band_list_my_contacts",
    "band_create_contact_request",
    "band_list_received_contact_requests",
    "band_list_sent_contact_requests",
    "band_approve_contact_request",
    "band_reject_contact_request",
    "band_cancel_contact_request",
    "band_resolve_handle",
    "band_remove_my_contact",
    "band_list_user_memories",
    "band_get_user_memory",
    "band_supersede_user_memory",
    "band_archive_user_memory",
    "band_restore_user_memory",
    "band_delete_user_memory",
}
HUMAN = HUMAN_CHAT | HUMAN_GROUPS


async def each_tool_of_an_agent(call: Tools, cast: Cast, ann: Person, bot: Bot) -> None:
    """Calls every tool of an agent, of all groups."""
    room = await bot.open_room(ann)
    sibling = await cast.bot(ann, "Sibling")
    weather = await cast.bot(await cast.person("bob"), "Weather")
    await chats_of_an_agent(call, room, ann, bot, sibling)
    await contacts_of_an_agent(call, bot, weather)
    await memories_of_an_agent(call, ann)
    await tasks_of_an_agent(call, room, bot)
    await call("health_check")
    assert [content for _, content in await ann.texts(room)] == [f"{token(ann)} Good morning"]


async def chats_of_an_agent(call: Tools, room: str, ann: Person, bot: Bot, sibling: Bot) -> None:
    peers = await call("band_lookup_peers", chat_id=room)
    assert [peer["handle"] for peer in peers["data"]] == [sibling.handle]
    # The older name of the argument is understood.
    added = await call("band_add_participant", room_id=room, identifier=sibling.handle)
    assert (added["id"], added["status"]) == (sibling.id, "added")
    members = await call("band_get_participants", chat_id=room)
    assert {one["id"] for one in members} == {ann.id, bot.id, sibling.id}
    removed = await call("band_remove_participant", chat_id=room, identifier=sibling.handle)
    assert removed["status"] == "removed"
    sent = await call("band_send_message", chat_id=room, content="Good morning", mentions=[f"@{ann.handle}"])
    assert (sent["success"], [one["id"] for one in sent["recipients"]]) == (True, [ann.id])
    for kind in ("thought", "tool_call"):
        event = await call("band_send_event", chat_id=room, content="hmm", message_type=kind)
        assert (event["success"], event["message_type"]) == (True, kind)
    assert await call("band_no_reply") == {"status": "no_reply"}
    elsewhere = await call("band_create_chatroom")
    assert (await bot.rest.agent_api_chats.get_agent_chat(elsewhere)).data.id == elsewhere
    refusal = await call.fails("band_send_message", chat_id=room, content="Who?", mentions=["nobody"])
    assert ann.handle in refusal, "those who can be mentioned are named"
    assert "404" in await call.fails("band_get_participants", chat_id=UNKNOWN_ID)


async def contacts_of_an_agent(call: Tools, bot: Bot, weather: Bot) -> None:
    asked = await call("band_add_contact", handle=weather.handle, message="Rain?")
    assert asked["status"] == "pending"
    requests = await call("band_list_contact_requests")
    assert [one["id"] for one in requests["data"]["sent"]] == [asked["id"]]
    await weather.rest.agent_api_contacts.respond_to_agent_contact_request(action="reject", handle=bot.handle)
    asked_back = await ask(weather, bot)
    done = await call("band_respond_contact_request", action="approve", request_id=asked_back)
    assert done == {"id": asked_back, "status": "approved"}
    assert [one["handle"] for one in (await call("band_list_contacts"))["data"]] == [weather.handle]
    assert await call("band_remove_contact", handle=weather.handle) == {"status": "removed"}


async def memories_of_an_agent(call: Tools, ann: Person) -> None:
    what = {"system": "working", "type": "episodic", "segment": "user", "thought": "It came up"}
    tea = await call("band_store_memory", content="Ann likes tea", scope="subject", subject_id=ann.id, **what)
    door = await call("band_store_memory", content="A red door", scope="agent", **what)
    found = await call("band_list_memories", content_query="door")
    assert [one["id"] for one in found["data"]] == [door["id"]]
    assert (await call("band_get_memory", memory_id=tea["id"]))["content"] == "Ann likes tea"
    assert (await call("band_supersede_memory", memory_id=tea["id"]))["status"] == "superseded"
    assert (await call("band_archive_memory", memory_id=door["id"]))["status"] == "archived"


async def tasks_of_an_agent(call: Tools, room: str, bot: Bot) -> None:
    task = await call("band_create_task", chat_id=room, subject="Paint the door")
    assert task["number"] == 1
    assert [one["id"] for one in (await call("band_list_tasks", chat_id=room))["data"]] == [task["id"]]
    updated = await call("band_update_task", chat_id=room, id="#1", status="completed", comment="Red it is")
    assert updated["overall_status"] == "completed"
    assert (await call("band_get_task", chat_id=room, id="1"))["id"] == task["id"]
    history = await call("band_get_task_history", chat_id=room, id="1")
    assert {one["event"] for one in history["data"]} == {"created", "status_changed", "commented"}
    assert (await call("band_set_board", chat_id=room, goal_title="A red house"))["goal_title"] == "A red house"
    assert (await call("band_get_board", chat_id=room))["updated_by"]["id"] == bot.id


async def each_tool_of_a_person(call: Tools, cast: Cast, ann: Person, bot: Bot) -> None:
    """Calls every tool of a person, of all groups."""
    bob = await cast.person("bob")
    await profile_and_agents_of_a_person(call, ann, bot)
    await chats_of_a_person(call, ann, bot)
    await contacts_of_a_person(call, ann, bob, cast)
    await memories_of_a_person(call, ann, bot)
    await call("health_check")


async def profile_and_agents_of_a_person(call: Tools, ann: Person, bot: Bot) -> None:
    assert (await call("band_get_my_profile"))["data"]["handle"] == ann.handle
    updated = await call("band_update_my_profile", first_name="Ann", last_name="Chovey")
    assert (updated["data"]["first_name"], updated["data"]["last_name"]) == ("Ann", "Chovey")
    made = await call("band_register_my_agent", name="Weather", description="Knows when it will rain")
    assert made["data"]["credentials"]["api_key"].startswith("band_a_")
    agents = await call("band_list_my_agents", page=1, page_size=10)
    assert {one["name"] for one in agents["data"]} == {bot.name, "Weather"}
    peers = await call("band_list_my_peers", peer_type="Agent")
    assert {one["id"] for one in peers["data"]} == {bot.id, made["data"]["agent"]["id"]}


async def chats_of_a_person(call: Tools, ann: Person, bot: Bot) -> None:
    room = (await call("band_create_my_chat_room"))["data"]["id"]
    assert room in {one["id"] for one in (await call("band_list_my_chats"))["data"]}
    assert (await call("band_get_my_chat_room", chat_id=room))["data"]["id"] == room
    assert await call("band_add_my_chat_participant", chat_id=room, participant_id=bot.id) == (
        f"Added participant: {bot.id}"
    )
    members = await call("band_list_my_chat_participants", chat_id=room, participant_type="Agent")
    assert [one["id"] for one in members["data"]] == [bot.id]
    sent = await call("band_send_my_chat_message", chat_id=room, content="Good morning", recipients=bot.name)
    assert sent["data"]["success"] is True
    first = await call("band_list_my_chat_messages", chat_id=room, message_type="text")
    assert [one["id"] for one in first["data"]] == [sent["data"]["id"]]
    later = await call("band_list_my_chat_messages", chat_id=room, since=first["data"][0]["inserted_at"])
    assert later["data"] == []
    assert await call("band_remove_my_chat_participant", chat_id=room, participant_id=bot.id) == (
        f"Removed participant: {bot.id}"
    )


async def contacts_of_a_person(call: Tools, ann: Person, bob: Person, cast: Cast) -> None:
    assert (await call("band_resolve_handle", handle=f"@{bob.handle}"))["data"]["type"] == "User"
    request = (await call("band_create_contact_request", recipient_handle=bob.handle, message="Hi"))["data"]["id"]
    sent = await call("band_list_sent_contact_requests", status="pending")
    assert [one["id"] for one in sent["data"]] == [request]
    assert (await call("band_cancel_contact_request", request_id=request))["data"]["status"] == "cancelled"

    rejected = await ask(await cast.person("eve"), ann)
    approved = await ask(bob, ann)
    received = await call("band_list_received_contact_requests")
    assert {one["id"] for one in received["data"]} == {rejected, approved}
    assert (await call("band_reject_contact_request", request_id=rejected))["data"]["status"] == "rejected"
    assert (await call("band_approve_contact_request", request_id=approved))["data"]["status"] == "approved"
    (contact,) = (await call("band_list_my_contacts"))["data"]
    assert contact["contact_id"] == bob.id
    assert (await call("band_remove_my_contact", contact_id=contact["id"]))["data"]["status"] == "removed"
    await befriend(ann, bob)
    assert (await call("band_remove_my_contact", handle=bob.handle))["data"]["status"] == "removed"


async def memories_of_a_person(call: Tools, ann: Person, bot: Bot) -> None:
    tea, door, gone = [
        (await remember(bot, content, about=ann)).id for content in ("Ann likes tea", "A red door", "A mistake")
    ]
    found = await call("band_list_user_memories", content_query="door", scope="about_me")
    assert [one["id"] for one in found["data"]] == [door]
    assert (await call("band_get_user_memory", memory_id=tea))["data"]["source_agent_id"] == bot.id
    assert (await call("band_supersede_user_memory", memory_id=tea))["data"]["status"] == "superseded"
    assert (await call("band_archive_user_memory", memory_id=door))["data"]["status"] == "archived"
    assert (await call("band_restore_user_memory", memory_id=door))["data"]["status"] == "active"
    await call("band_delete_user_memory", memory_id=gone)
    left = await call("band_list_user_memories", status="all")
    assert {one["id"] for one in left["data"]} == {tea, door}
