"""The contract as the generator is given it: cut down to `operations.txt`, with the statuses that any operation may
answer written into each, and with ids that mean something: a generated id names nothing, and so would only ever meet a
404. Which id stands for what is decided here by name; a name becomes the real id just before the request is sent.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from harness.paths import CONTRACT

CONFIG = {
    "seed": 4000,
    "generation": {"max-examples": 40, "database": "none"},
    # Methods that the contract does not have are the business of the REST suite.
    "phases": {"coverage": {"unexpected-methods": []}},
}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
ERROR_SCHEMA = {"$ref": "#/components/schemas/Error"}
ERROR = {"description": "any operation", "content": {"application/json": {"schema": ERROR_SCHEMA}}}


def stand_in(number: int) -> str:
    """A name for an id that only the running server knows, in the shape of an id."""
    return f"00000000-0000-4000-8000-{number:012d}"


(
    NOBODY,
    ROOM,
    STOPPED_ROOM,
    DOOMED_ROOM,
    BULK_ROOM,
    MESSAGE,
    AGENT,
    PEER,
    CANDIDATE,
    DOOMED_PEER,
    DOOMED_MEMBER,
    DOOMED_AGENT,
    BULK_AGENT,
    EXECUTION,
    MEMORY,
    DOOMED_MEMORY,
    TASK,
    FILE,
    SENT,
    APPROVED,
    REJECTED,
    JOB,
) = (stand_in(number) for number in range(1, 23))
# The same for handles: of somebody who is nobody's contact yet, and of a contact.
STRANGER, FRIEND, NO_HANDLE = "stranger-of-that-name", "friend-of-that-name", "two words"

# What an id in a path stands for; what an operation destroys must be nothing that the others need.
PATH_IDS = {
    ("delete", "/api/v1/me/chats/{id}", "id"): DOOMED_ROOM,
    ("delete", "/api/v1/me/agents/{id}", "id"): DOOMED_AGENT,
    ("delete", "/api/v1/me/chats/{chat_id}/participants/{id}", "id"): DOOMED_PEER,
    ("delete", "/api/v1/agent/chats/{chat_id}/participants/{id}", "id"): DOOMED_MEMBER,
    ("delete", "/api/v1/me/memories/{id}", "id"): DOOMED_MEMORY,
    ("post", "/api/v1/me/chats/{chat_id}/agents/stop", "chat_id"): STOPPED_ROOM,
    ("post", "/api/v1/me/chats/{chat_id}/agents/play", "chat_id"): STOPPED_ROOM,
    ("delete", "/api/v1/me/contacts/requests/{id}", "id"): SENT,
    ("post", "/api/v1/me/contacts/requests/{id}/approve", "id"): APPROVED,
    ("post", "/api/v1/me/contacts/requests/{id}/reject", "id"): REJECTED,
}
# Of all other operations, by a part of the path.
PART_IDS = {
    "/messages/{id}": MESSAGE,
    "/tasks/{id}": TASK,
    "/files/{id}": FILE,
    "/memories/{id}": MEMORY,
    "/bulk-deletions/{id}": JOB,
    "/agents/{id}": AGENT,
}


def path_id(method: str, template: str, parameter: str) -> str:
    if (method, template, parameter) in PATH_IDS:
        return PATH_IDS[method, template, parameter]
    if parameter == "execution_id":
        return EXECUTION
    by_part = (name for part, name in PART_IDS.items() if part in template)
    return next(by_part, ROOM) if parameter == "id" else ROOM


def narrowed(schemas: dict[str, Any]) -> None:
    """Describes what hardly ever meets all its rules at once more narrowly than the contract does."""
    handles = {"enum": [STRANGER, FRIEND, "nobody", NO_HANDLE]}
    schemas["ParticipantAdd"]["properties"]["participant_id"] = {"type": "string", "enum": [CANDIDATE, PEER, NOBODY]}
    schemas["MentionInput"] |= {"required": ["id"]}
    schemas["MentionInput"]["properties"]["id"] = {"type": "string", "enum": [PEER, NOBODY]}
    schemas["MentionInput"]["properties"]["kind"]["enum"] = ["mention", "reference"]
    schemas["MessageCreate"] |= {"required": ["content", "mentions"]}
    schemas["MessageCreate"]["properties"]["mentions"] |= {"minItems": 1, "maxItems": 2}
    attachments = {"items": {"type": "string", "enum": [FILE, NOBODY]}, "maxItems": 2}
    schemas["MessageCreate"]["properties"]["attachment_ids"] |= attachments
    schemas["ContactRequestCreate"]["properties"]["recipient_handle"] |= handles
    schemas["TaskCreate"]["properties"]["supersedes_id"] = {"enum": [None, TASK, "1", "99", NOBODY]}
    schemas["MemoryCreate"]["properties"]["subject_id"] = {"enum": [None, PEER, NOBODY]}
    for name, doomed in (("BulkDeleteChats", BULK_ROOM), ("BulkDeleteAgents", BULK_AGENT)):
        schemas[name]["properties"]["ids"]["items"] = {"type": "string", "enum": [doomed, NOBODY, "nonsense"]}


def narrowed_body(operation: dict[str, Any]) -> None:
    """The same for a body that has no name of its own."""
    content = operation.get("requestBody", {}).get("content", {})
    properties = content.get("application/json", {}).get("schema", {}).get("properties", {})
    if "handle" in properties:
        properties["handle"] |= {"enum": [STRANGER, FRIEND, "nobody", NO_HANDLE]}
    for name in {"request_id", "contact_id"} & properties.keys():
        properties[name] = {"type": "string", "enum": [SENT, NOBODY]}
    if "*/*" in content:
        # What nobody names cannot be generated.
        content["application/octet-stream"] = content.pop("*/*")
    for status in {"200", "206"} & operation["responses"].keys():
        answered = operation["responses"][status].get("content", {})
        if "application/octet-stream" in answered:
            # A file is of its own type.
            answered["*/*"] = answered.pop("application/octet-stream")


def document() -> dict[str, Any]:
    contract = json.loads(CONTRACT.read_text())
    narrowed(contract["components"]["schemas"])
    lines = (Path(__file__).parent / "operations.txt").read_text().splitlines()
    paths: dict[str, dict[str, Any]] = {}
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        method, template = line.split()
        method = method.lower()
        operation = copy.deepcopy(contract["paths"][template][method])
        narrowed_body(operation)
        for status in contract["x-any-operation"]:
            operation["responses"].setdefault(str(status), ERROR)
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                numbers = ["1", "99"] if parameter["name"] == "id" and "/tasks/{id}" in template else []
                parameter["schema"] |= {"enum": [path_id(method, template, parameter["name"]), *numbers, NOBODY]}
            if parameter["name"] == "x-file-name":
                parameter["schema"] |= {"pattern": "^[a-z ]{0,9}[a-z]$"}
        paths.setdefault(template, {})[method] = operation
    return {**contract, "paths": paths}


SCHEMA = schemathesis.openapi.from_dict(document(), config=schemathesis.Config.from_dict(CONFIG))
