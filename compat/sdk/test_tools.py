"""Every platform tool of band-sdk, called by a running agent in a turn of its own."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from band.core.exceptions import BandToolError
from band.core.protocols import AgentToolsProtocol
from band.core.types import Capability, PlatformMessage
from band.runtime.tools import iter_tool_definitions
from band_rest.types import ChatMessageRequest

from harness.cast import UNKNOWN_ID, Bot, Cast, Person, mention
from harness.contacts import ask
from harness.files import PNG, described, put
from harness.scripted import Scripted, agent_of, running
from harness.server import Server
from harness.waiting import eventually

NO_FILE = "File not found, or file transfer is unavailable in this room."
NO_ORGANIZATION = (
    'scope="organization" was rejected: the agent\'s owner does not belong to an organization. '
    'Retry with scope="agent" instead.'
)


class Calls:
    """The tools of a turn, which must all succeed, and which of them were called."""

    def __init__(self, tools: AgentToolsProtocol) -> None:
        self.tools = tools
        self.made: set[str] = set()

    async def __call__(self, name: str, /, **arguments: Any) -> Any:
        self.made.add(name)
        outcome = await self.tools.execute_tool_call_structured(name, arguments)
        assert outcome.ok, f"{name}: {outcome.error_message}"
        return outcome.value

    async def fails(self, name: str, /, **arguments: Any) -> str:
        outcome = await self.tools.execute_tool_call_structured(name, arguments)
        assert not outcome.ok and outcome.value == outcome.error_message, f"{name}: {outcome.value}"
        return outcome.error_message


Story = Callable[[Calls], Awaitable[None]]


def tools_of(*capabilities: Capability) -> set[str]:
    return {definition.name for definition in iter_tool_definitions(capabilities=frozenset(capabilities))}


async def told(server: Server, ann: Person, bot: Bot, room: str, story: Story) -> set[str]:
    """Lets the agent tell the story in a turn, which must end well; the tools it took."""
    made: set[str] = set()
    failures: list[BaseException] = []

    async def turn(message: PlatformMessage, tools: AgentToolsProtocol) -> None:
        calls = Calls(tools)
        try:
            await story(calls)
            await tools.send_message("That was all", mentions=[message.sender_id])
        except BaseException as failure:
            failures.append(failure)
            raise
        made.update(calls.made)

    adapter = Scripted(turn, capabilities=list(Capability))
    async with running(agent_of(server, bot, adapter)):
        assert adapter.features.capabilities == frozenset(Capability), "the deployment serves them all"
        sent = (await ann.say(room, "Go on", bot)).id

        async def over() -> bool:
            delivery = await ann.delivery(room, sent, bot)
            return delivery is not None and delivery["status"] in ("processed", "failed")

        await eventually(over, what="the turn is over", within=30)
    if failures:
        raise failures[0]
    assert (await ann.delivery(room, sent, bot))["status"] == "processed"
    return made


@pytest.fixture
async def room(ann: Person, bot: Bot) -> str:
    return await ann.open_room(bot)


@pytest.fixture
async def weather(cast: Cast) -> Bot:
    """A stranger's agent."""
    return await cast.bot(await cast.person("bob"), "Weather")


def test_there_are_28_of_them() -> None:
    assert len(tools_of(*Capability)) == 28


async def test_chat(server: Server, ann: Person, bot: Bot, cast: Cast) -> None:
    # Its own room, because only an owner gives a role.
    room = await bot.open_room(ann)
    reviewer = await cast.bot(ann, "Reviewer")

    async def story(call: Calls) -> None:
        peers = await call("band_lookup_peers", page=1, page_size=10)
        assert [peer["handle"] for peer in peers["data"]] == [reviewer.handle]
        assert peers["metadata"] == {"page": 1, "page_size": 10, "total_count": 1, "total_pages": 1}

        added = await call("band_add_participant", identifier=f"@{reviewer.handle}", role="admin")
        assert added == {"id": reviewer.id, "name": reviewer.name, "role": "admin", "status": "added"}
        again = await call("band_add_participant", identifier=reviewer.id)
        assert again["status"] == "already_in_room"
        members = await call("band_get_participants")
        assert {(one["id"], one["role"]) for one in members} == {
            (ann.id, "member"),
            (bot.id, "owner"),
            (reviewer.id, "admin"),
        }
        thought = await call("band_send_event", content="hmm", message_type="thought", metadata={"depth": 3})
        assert (thought["success"], thought["message_type"]) == (True, "thought")
        sent = await call("band_send_message", content="Please review", mentions=[reviewer.handle])
        assert sent["success"] is True
        assert [one["id"] for one in sent["recipients"]] == [reviewer.id]
        removed = await call("band_remove_participant", identifier=reviewer.name)
        assert removed == {"id": reviewer.id, "name": reviewer.name, "status": "removed"}
        elsewhere = await call("band_create_chatroom")
        assert elsewhere in {row.id for row in (await bot.rest.agent_api_chats.list_agent_chats()).data}
        assert await call("band_no_reply", reason="I have said it") == {"status": "no_reply"}

    assert await told(server, ann, bot, room, story) == tools_of()


async def test_contacts(server: Server, ann: Person, bot: Bot, room: str, weather: Bot) -> None:
    async def story(call: Calls) -> None:
        asked = await call("band_add_contact", handle=f"@{weather.handle}", message="Rain?")
        assert asked["status"] == "pending"
        assert "409" in await call.fails("band_add_contact", handle=weather.handle)
        requests = await call("band_list_contact_requests", sent_status="all")
        assert requests["data"]["received"] == []
        (sent,) = requests["data"]["sent"]
        assert (sent["id"], sent["to_handle"], sent["message"]) == (asked["id"], weather.handle, "Rain?")
        assert requests["metadata"]["sent"] == {"total": 1, "total_pages": 1}
        cancelled = await call("band_respond_contact_request", action="cancel", handle=weather.handle)
        assert cancelled == {"id": asked["id"], "status": "cancelled"}

        asked_back = await ask(weather, bot)
        (received,) = (await call("band_list_contact_requests"))["data"]["received"]
        assert (received["id"], received["from_handle"]) == (asked_back, weather.handle)
        approved = await call("band_respond_contact_request", action="approve", request_id=asked_back)
        assert approved == {"id": asked_back, "status": "approved"}
        contacts = await call("band_list_contacts")
        assert [(one["handle"], one["type"]) for one in contacts["data"]] == [(weather.handle, "Agent")]
        assert contacts["metadata"]["total_count"] == 1
        # A contact can be found and brought in.
        peers = await call("band_lookup_peers")
        assert weather.handle in {peer["handle"] for peer in peers["data"]}
        assert (await call("band_add_participant", identifier=weather.handle))["status"] == "added"
        assert await call("band_remove_contact", contact_id=contacts["data"][0]["id"]) == {"status": "removed"}
        assert "404" in await call.fails("band_remove_contact", handle=weather.handle)

    made = await told(server, ann, bot, room, story)
    assert made >= tools_of(Capability.CONTACTS) - tools_of()


async def test_memory(server: Server, ann: Person, bot: Bot, room: str) -> None:
    async def story(call: Calls) -> None:
        what = {"system": "long_term", "type": "semantic", "segment": "user", "thought": "It came up"}
        fact = await call("band_store_memory", content="Ann likes tea", scope="subject", subject_id=ann.id, **what)
        assert (fact["content"], fact["scope"], fact["subject_id"]) == ("Ann likes tea", "subject", ann.id)
        private = await call("band_store_memory", content="A secret", scope="agent", metadata={"tags": ["x"]}, **what)
        assert (private["scope"], private["status"], private["organization_id"]) == ("agent", "active", None)
        with pytest.raises(BandToolError) as refusal:
            await call("band_store_memory", content="For all", scope="organization", **what)
        assert str(refusal.value) == NO_ORGANIZATION

        found = await call("band_list_memories", content_query="tea", subject_id=ann.id, scope="subject")
        assert [one["id"] for one in found["data"]] == [fact["id"]]
        assert found["meta"] == found["metadata"]
        assert await call("band_get_memory", memory_id=private["id"]) == private
        assert (await call("band_supersede_memory", memory_id=fact["id"]))["status"] == "superseded"
        assert (await call("band_archive_memory", memory_id=private["id"]))["status"] == "archived"
        assert (await call("band_list_memories"))["data"] == []
        everything = await call("band_list_memories", status="all", page_size=50)
        assert {one["id"] for one in everything["data"]} == {fact["id"], private["id"]}
        assert "404" in await call.fails("band_get_memory", memory_id=UNKNOWN_ID)

    made = await told(server, ann, bot, room, story)
    assert made == tools_of(Capability.MEMORY) - tools_of()


async def test_files(server: Server, ann: Person, bot: Bot, room: str) -> None:
    picture = (await put(ann, room, PNG, described(PNG, "dot.png"))).json()["data"]["id"]
    message = ChatMessageRequest(content="Look", mentions=[mention(bot)], attachment_ids=[picture])
    await ann.rest.human_api_messages.send_my_chat_message(room, message=message)
    # That message is a turn as well, so the story is told in the first of two.
    shown: list[str] = []

    async def story(call: Calls) -> None:
        if shown:
            return
        sent = await call(
            "band_send_room_file", content="Drei Chinesen\n", filename="song.txt", caption="Sing", mentions=[ann.id]
        )
        song = sent["attachment"]
        assert (song["name"], song["bytes"], song["content_type"]) == ("song.txt", 14, "text/plain")
        files = await call("band_list_room_files")
        assert {one["id"]: one["name"] for one in files["data"]} == {picture: "dot.png", song["id"]: "song.txt"}
        assert files["next_cursor"] is None
        assert await call("band_read_room_file", file_id=song["id"]) == {
            "name": "song.txt",
            "content_type": "text/plain",
            "bytes": 14,
            "text": "Drei Chinesen\n",
        }
        (block,) = (await call("band_read_room_file", file_id=picture))["content"]
        assert (block["type"], block["mimeType"]) == ("image", "image/png")
        assert base64.b64decode(block["data"]) == PNG
        with pytest.raises(BandToolError) as refusal:
            await call("band_read_room_file", file_id=UNKNOWN_ID)
        assert str(refusal.value) == NO_FILE
        assert call.made == tools_of(Capability.FILES) - tools_of()
        shown.append(sent["message_id"])

    await told(server, ann, bot, room, story)
    row = await ann.message(room, shown[0])
    assert [file.name for file in row.attachments] == ["song.txt"]


async def test_tasks(server: Server, ann: Person, bot: Bot, room: str) -> None:
    async def story(call: Calls) -> None:
        task = await call("band_create_task", subject="Paint the door", detail="In red")
        assert (task["number"], task["overall_status"], task["assignments"]) == (1, "pending", [])
        await call("band_create_task", subject="Paint the window")
        better = await call("band_create_task", subject="Paint the window twice", supersedes_id="#2")
        assert better["number"] == 3
        board = await call("band_list_tasks")
        assert [one["number"] for one in board["data"]] == [1, 3]
        assert board["metadata"] == {"has_more": False, "limit": 50, "next_cursor": None}
        first = await call("band_list_tasks", state="all", limit=2)
        rest = await call("band_list_tasks", state="all", cursor=first["metadata"]["next_cursor"], limit=2)
        assert [one["number"] for one in first["data"] + rest["data"]] == [1, 2, 3]

        updated = await call("band_update_task", id="#1", status="in_progress", active_form="Painting", comment="Red?")
        assert updated["overall_status"] == "in_progress"
        assert [one["active_form"] for one in updated["assignments"]] == ["Painting"]
        shown = await call("band_get_task", id=task["id"], include="history")
        assert (shown["history"][0]["event"], shown["history_truncated"]) == ("created", False)
        history = await call("band_get_task_history", id="1", limit=10)
        assert sorted(one["event"] for one in history["data"]) == ["commented", "created", "status_changed"]
        assert (await call("band_get_task", id="2"))["superseded_by_id"] == better["id"]

        assert (await call("band_get_board"))["goal_title"] is None
        goal = await call("band_set_board", goal_title="A red house", goal_summary="All of it")
        assert (goal["goal_title"], goal["updated_by"]["id"]) == ("A red house", bot.id)
        trail = await call("band_get_board", include="history")
        assert [one["event"] for one in trail["history"]] == ["goal_set"]
        assert "404" in await call.fails("band_get_task", id="99")

    made = await told(server, ann, bot, room, story)
    assert made == tools_of(Capability.TASKS) - tools_of()
