"""Generated requests, good and bad, to every operation that is built: no 5xx, only declared statuses and bodies.

The document is the contract, cut down to `operations.txt`, with the statuses that any operation may answer written
into each, and with ids that mean something: a generated id names nothing, and so would only ever meet a 404. Which
id stands for what is decided here by name; a name becomes the real id just before the request is sent.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from harness.paths import CONTRACT
from harness.server import Server

CONFIG = {
    "seed": 4000,
    "generation": {"max-examples": 60, "database": "none"},
    # Methods that the contract does not have are the business of the REST suite.
    "phases": {"coverage": {"unexpected-methods": []}},
}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ERROR_SCHEMA = {"$ref": "#/components/schemas/Error"}
ERROR = {"description": "any operation", "content": {"application/json": {"schema": ERROR_SCHEMA}}}


def stand_in(number: int) -> str:
    """A name for an id that only the running server knows, in the shape of an id."""
    return f"00000000-0000-4000-8000-{number:012d}"


ROOM, MESSAGE, PEER, DOOMED_ROOM, DOOMED_AGENT, DOOMED_PEER, NOBODY = (stand_in(number) for number in range(1, 8))

# What an id in a path stands for; what an operation destroys must be nothing that the others need.
PATH_IDS = {
    ("delete", "/api/v1/me/chats/{id}", "id"): DOOMED_ROOM,
    ("delete", "/api/v1/me/agents/{id}", "id"): DOOMED_AGENT,
    ("delete", "/api/v1/me/chats/{chat_id}/participants/{id}", "id"): DOOMED_PEER,
    ("delete", "/api/v1/agent/chats/{chat_id}/participants/{id}", "id"): DOOMED_PEER,
}


def path_id(method: str, template: str, parameter: str) -> str:
    if (method, template, parameter) in PATH_IDS:
        return PATH_IDS[method, template, parameter]
    return MESSAGE if "/messages/{id}" in template and parameter == "id" else ROOM


def document() -> dict[str, Any]:
    contract = json.loads(CONTRACT.read_text())
    lines = (Path(__file__).parent / "operations.txt").read_text().splitlines()
    paths: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        method, template = line.split()
        method = method.lower()
        operation = copy.deepcopy(contract["paths"][template][method])
        for status in contract["x-any-operation"]:
            operation["responses"].setdefault(str(status), ERROR)
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                parameter["schema"] |= {"enum": [path_id(method, template, parameter["name"]), NOBODY]}
        paths.setdefault(template, {})[method] = operation
    schemas = contract["components"]["schemas"]
    schemas["ParticipantAdd"]["properties"]["participant_id"]["enum"] = [PEER, NOBODY]
    # A generated message hardly ever meets all its rules at once, so a good one is described more narrowly.
    schemas["MentionInput"] |= {"required": ["id"]}
    schemas["MentionInput"]["properties"]["id"]["enum"] = [PEER, NOBODY]
    schemas["MentionInput"]["properties"]["kind"]["enum"] = ["mention", "reference"]
    schemas["MessageCreate"] |= {"required": ["content", "mentions"]}
    schemas["MessageCreate"]["properties"]["mentions"] |= {"minItems": 1, "maxItems": 2}
    schemas["MessageCreate"]["properties"]["attachment_ids"] |= {"maxItems": 0}
    return {**contract, "paths": paths}


SCHEMA = schemathesis.openapi.from_dict(document(), config=schemathesis.Config.from_dict(CONFIG))


@dataclass(frozen=True)
class Target:
    """The server, both keys, and the real ids behind the names."""

    url: str
    keys: dict[str, str]
    ids: dict[str, str]

    def key_for(self, path: str) -> str:
        return self.keys["person" if path.startswith("/api/v1/me/") else "agent"]

    def resolved(self, value: Any) -> Any:
        """The same value with the real ids."""
        match value:
            case str():
                return self.ids.get(value, value)
            case list():
                return [self.resolved(item) for item in value]
            case dict():
                return {name: self.resolved(item) for name, item in value.items()}
            case _:
                return value


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    server = Server(tmp_path_factory.mktemp("server")).start()
    person = server.owner_key

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        reply = requests.post(server.url + path, json=body, headers={"x-api-key": person}, timeout=30)
        reply.raise_for_status()
        return reply.json()["data"]

    def register(name: str) -> dict[str, Any]:
        description = "An agent of the compatibility suite"
        return post("/api/v1/me/agents/register", {"agent": {"name": name, "description": description}})

    agent, peer, doomed_peer, doomed = (register(name) for name in ("Agent", "Peer", "Doomed peer", "Doomed"))
    room, doomed_room = (post("/api/v1/me/chats", {"chat": {}})["id"] for _ in range(2))
    # The agent may add and remove members, so that its half of the table is reached too.
    for member, role in ((agent, "admin"), (peer, "member"), (doomed_peer, "member")):
        added = {"participant": {"participant_id": member["agent"]["id"], "role": role}}
        post(f"/api/v1/me/chats/{room}/participants", added)
    mentions = [{"id": agent["agent"]["id"]}]
    message = post(f"/api/v1/me/chats/{room}/messages", {"message": {"content": "hello", "mentions": mentions}})

    yield Target(
        url=server.url,
        keys={"person": person, "agent": agent["credentials"]["api_key"]},
        ids={
            ROOM: room,
            MESSAGE: message["id"],
            PEER: peer["agent"]["id"],
            DOOMED_PEER: doomed_peer["agent"]["id"],
            DOOMED_ROOM: doomed_room,
            DOOMED_AGENT: doomed["agent"]["id"],
        },
    )
    server.close()


@SCHEMA.parametrize()
def test_an_operation_keeps_the_contract_whatever_it_is_sent(case: schemathesis.Case, target: Target) -> None:
    case.path_parameters = target.resolved(case.path_parameters)
    case.body = target.resolved(case.body)
    # The key is given last: a generated one would only ever meet a 401.
    headers = {"X-API-Key": target.key_for(case.operation.path)}
    case.call_and_validate(base_url=target.url, headers=headers, checks=CHECKS)
