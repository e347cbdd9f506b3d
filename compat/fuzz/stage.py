"""The server that the generated requests go to, and what there is on it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import requests
import schemathesis
from schemathesis.transport.serialization import Binary

from fuzz.document import (
    AGENT,
    APPROVED,
    BULK_AGENT,
    BULK_ROOM,
    CANDIDATE,
    CHECKS,
    DOOMED_AGENT,
    DOOMED_MEMBER,
    DOOMED_MEMORY,
    DOOMED_PEER,
    DOOMED_ROOM,
    EXECUTION,
    FILE,
    FRIEND,
    JOB,
    MEMORY,
    MESSAGE,
    NOBODY,
    PEER,
    REJECTED,
    ROOM,
    SENT,
    STOPPED_ROOM,
    STRANGER,
    TASK,
)
from harness.server import Server


@dataclass(frozen=True)
class Target:
    """The server, both keys, and the real ids and handles behind the names."""

    url: str
    keys: dict[str, str]
    ids: dict[str, str]

    def call(self, case: schemathesis.Case) -> schemathesis.Response:
        """Sends a request that was generated, and holds the reply against the contract."""
        case.path_parameters = self._resolved(case.path_parameters)
        case.body = self._resolved(case.body)
        name = next((name for name in case.headers if name.lower() == "x-file-sha256"), None)
        if isinstance(case.body, Binary) and name is not None and len(case.headers[name]) == 64:
            # A hash of the right form is made right, since no generated one ever is.
            case.headers[name] = hashlib.sha256(case.body.data).hexdigest()
        # The key is given last: a generated one would only ever meet a 401.
        return case.call_and_validate(base_url=self.url, headers=self.key_of(case.operation.path), checks=CHECKS)

    def key_of(self, path: str) -> dict[str, str]:
        """The header for a route: those of agents take the agent's key, all others the owner's."""
        return {"X-API-Key": self.keys["agent" if path.startswith("/api/v1/agent/") else "person"]}

    def _resolved(self, value: Any) -> Any:
        match value:
            case str():
                return self.ids.get(value, value)
            case list():
                return [self._resolved(item) for item in value]
            case dict():
                return {name: self._resolved(item) for name, item in value.items()}
            case _:
                return value


class Story:
    """Requests that must succeed, to make what the generated ones are about."""

    def __init__(self, server: Server) -> None:
        self._url = server.url
        self.person = server.owner_key

    def send(self, method: str, path: str, body: Any = None, key: str | None = None, **options: Any) -> Any:
        headers = {"x-api-key": key or self.person, **options.pop("headers", {})}
        reply = requests.request(method, self._url + path, json=body, headers=headers, timeout=30, **options)
        assert reply.ok, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json()["data"]

    def register(self, name: str, key: str | None = None) -> tuple[str, str]:
        body = {"agent": {"name": name, "description": "An agent of the compatibility suite"}}
        made = self.send("POST", "/api/v1/me/agents/register", body, key)
        return made["agent"]["id"], made["credentials"]["api_key"]

    def room(self, **members: str) -> str:
        """A room with these members, by role."""
        room = self.send("POST", "/api/v1/me/chats", {"chat": {}})["id"]
        for role, member in members.items():
            self.add(room, member, role)
        return room

    def add(self, room: str, member: str, role: str = "member") -> None:
        body = {"participant": {"participant_id": member, "role": role}}
        self.send("POST", f"/api/v1/me/chats/{room}/participants", body)


def set_up(server: Server) -> Target:
    story = Story(server)
    names = ("Agent", "Peer", "Candidate", "Doomed peer", "Doomed member", "Doomed", "Doomed in bulk")
    (agent, key), *others = (story.register(name) for name in names)
    peer, candidate, doomed_peer, doomed_member, doomed, bulk_agent = (one for one, _ in others)
    # The agent owns the room too, so that its half of the table is reached as well.
    room = story.room(owner=agent, member=peer)
    for member in (doomed_peer, doomed_member):
        story.add(room, member)
    chat = f"/api/v1/agent/chats/{room}"
    mentioning = {"message": {"content": "hello", "mentions": [{"id": agent}]}}
    message = story.send("POST", f"/api/v1/me/chats/{room}/messages", mentioning)["id"]
    task = story.send("POST", f"{chat}/tasks", {"subject": "Paint the door"}, key)["id"]
    described = {"x-file-name": "notes.txt", "x-file-sha256": hashlib.sha256(b"notes").hexdigest()}
    file = story.send("PUT", f"{chat}/files", key=key, data=b"notes", headers=described)["id"]

    # What the agent keeps to itself, its owner may read and change.
    memory = {"system": "working", "type": "semantic", "segment": "user", "thought": "x", "content": "y"}
    kept, doomed_memory = (
        story.send("POST", "/api/v1/agent/memories", {"memory": memory}, key)["id"] for _ in range(2)
    )

    def ask(who: str, whom: str) -> str:
        body = {"contact_request": {"recipient_handle": whom}}
        return story.send("POST", "/api/v1/me/contacts/requests", body, who)["id"]

    owner = story.send("GET", "/api/v1/me/profile")["handle"]
    stranger, friend, sent, approved, rejected = (
        server.add_user(name) for name in ("stranger", "friend", "sent", "approved", "rejected")
    )
    story.send("POST", f"/api/v1/me/contacts/requests/{ask(friend.api_key, owner)}/approve")
    itself = story.send("GET", "/api/v1/agent/me", key=key)["handle"]
    consent = {"action": "approve", "request_id": ask(friend.api_key, itself)}
    story.send("POST", "/api/v1/agent/contacts/requests/respond", consent, key)
    return Target(
        url=server.url,
        keys={"person": story.person, "agent": key},
        ids={
            ROOM: room,
            STOPPED_ROOM: story.room(member=peer),
            DOOMED_ROOM: story.room(),
            BULK_ROOM: story.room(),
            MESSAGE: message,
            AGENT: agent,
            PEER: peer,
            CANDIDATE: candidate,
            DOOMED_PEER: doomed_peer,
            DOOMED_MEMBER: doomed_member,
            DOOMED_AGENT: doomed,
            BULK_AGENT: bulk_agent,
            EXECUTION: story.send("GET", f"/api/v1/me/agents/{agent}/executions")[0]["id"],
            MEMORY: kept,
            DOOMED_MEMORY: doomed_memory,
            TASK: task,
            FILE: file,
            SENT: ask(story.person, sent.handle),
            APPROVED: ask(approved.api_key, owner),
            REJECTED: ask(rejected.api_key, owner),
            JOB: story.send("POST", "/api/v1/me/chats/bulk-delete", {"ids": [NOBODY]})["id"],
            STRANGER: stranger.handle,
            FRIEND: friend.handle,
        },
    )
