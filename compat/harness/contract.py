"""The contract as an oracle: every reply that a test causes is held against `openapi.json`.

The transports of httpx (which every Python client here uses) are watched, not changed: the client gets the very bytes
that the server sent. What the contract does not allow is collected, and a fixture fails the test that caused it.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import httpx
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from harness.paths import CONTRACT

DOCUMENT_URI = "urn:bandstand:contract"
METHODS = ("get", "post", "put", "patch", "delete")

# Operations that the server has of its own, with the operation of the
# document whose replies theirs must look like.
LIKE = {
    ("post", "/api/v1/me/chats/{id}/archive"): ("patch", "/api/v1/me/chats/{id}"),
    ("post", "/api/v1/me/chats/{id}/unarchive"): ("patch", "/api/v1/me/chats/{id}"),
}
# Paths outside the document: only the request id is checked there.
OWN_PATHS = ("/healthz", "/readyz", "/api/v1/test", "/api/v1/sign-in", "/.well-known/jwks.json")
# Another protocol, whose streams must not be waited for.
MCP_PATH = "/mcp"
# Operations of its own whose replies look like no other's: their errors are in the envelope.
OWN_OPERATIONS = (
    re.compile(r"/api/v1/(me|agent)/chats/[^/]+/messages/[^/]+/deliveries"),
    re.compile(r"/api/v1/me/chats/[^/]+/messages/[^/]+/redeliver"),
    re.compile(r"/api/v1/me/dead-letters"),
)

# The shapes that the contract's text gives these two, narrower than the formats of JSON Schema.
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def _formats() -> FormatChecker:
    checker = FormatChecker(formats=())

    @checker.checks("uuid", raises=ValueError)
    def is_uuid(value: object) -> bool:
        return not isinstance(value, str) or (UUID.fullmatch(value) is not None and bool(uuid.UUID(value)))

    @checker.checks("date-time", raises=ValueError)
    def is_timestamp(value: object) -> bool:
        return not isinstance(value, str) or (
            TIMESTAMP.fullmatch(value) is not None and bool(datetime.fromisoformat(value))
        )

    @checker.checks("email")
    def is_email(value: object) -> bool:
        return not isinstance(value, str) or re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None

    @checker.checks("uri")
    def is_uri(value: object) -> bool:
        return not isinstance(value, str) or re.match(r"[a-z][a-z0-9+.-]*:", value) is not None

    return checker


@dataclass(frozen=True)
class Operation:
    """A path template and method of the document."""

    method: str
    template: str
    declared: frozenset[int]

    def matches(self, path: str) -> bool:
        pattern = re.sub(r"\\\{[^}]+\\\}", "[^/]+", re.escape(self.template))
        return re.fullmatch(pattern, path) is not None

    @property
    def literals(self) -> int:
        return sum(not segment.startswith("{") for segment in self.template.split("/"))


class Contract:
    """The document, ready to judge replies."""

    def __init__(self) -> None:
        self.document = json.loads(CONTRACT.read_text())
        resource = Resource.from_contents(self.document, default_specification=DRAFT202012)
        self._registry: Registry = Registry().with_resource(DOCUMENT_URI, resource)
        self._formats = _formats()
        self._any_operation = frozenset(self.document["x-any-operation"])
        self._operations = [
            Operation(method, template, frozenset(int(status) for status in item[method]["responses"]))
            for template, item in self.document["paths"].items()
            for method in METHODS
            if method in item
        ]
        self._operations += [
            Operation(method, template, self._operation(*like).declared) for (method, template), like in LIKE.items()
        ]

    def faults(self, method: str, path: str, status: int, headers: httpx.Headers, body: bytes) -> Iterator[str]:
        """What is wrong with one reply."""
        request_id = headers.get("x-request-id")
        if not request_id:
            yield "no x-request-id header"
        if path in OWN_PATHS:
            return
        if any(own.fullmatch(path) for own in OWN_OPERATIONS):
            if status >= 400:
                yield from self._error_faults(headers, body, request_id)
            return
        known = [operation for operation in self._operations if operation.matches(path)]
        operation = max(
            (one for one in known if one.method == method.lower()), key=lambda one: one.literals, default=None
        )
        if operation is None:
            # An unknown path must be unknown to the server too, and a known path must refuse the method.
            expected = 405 if known else 404
            if status != expected:
                yield f"not an operation of the contract, so {expected} was due"
            yield from self._error_faults(headers, body, request_id)
            return
        if status not in operation.declared | self._any_operation:
            yield f"status {status} is not declared"
        if status == 204:
            if body:
                yield "204 with a body"
        elif status < 300:
            yield from self._shape_faults(headers, body, self._schema(operation, status))
        else:
            faults = list(self._error_faults(headers, body, request_id))
            # The envelope first: what a declared error adds to it is of interest only when the envelope is right.
            if not faults and status in operation.declared:
                faults = list(self._shape_faults(headers, body, self._schema(operation, status)))
            yield from faults

    def _error_faults(self, headers: httpx.Headers, body: bytes, request_id: str | None) -> Iterator[str]:
        yield from self._shape_faults(headers, body, f"{DOCUMENT_URI}#/components/schemas/Error")
        try:
            named = json.loads(body)["error"]["request_id"]
        except (ValueError, LookupError, TypeError):
            return
        if named != request_id:
            yield f"the body's request_id {named!r} is not the header's {request_id!r}"

    def _shape_faults(self, headers: httpx.Headers, body: bytes, schema: str | None) -> Iterator[str]:
        if schema is None:
            return
        kind = headers.get("content-type", "")
        if kind.split(";")[0].strip() != "application/json":
            yield f"content type {kind!r}"
        try:
            value = json.loads(body)
        except ValueError:
            yield f"not JSON: {body[:200]!r}"
            return
        validator = Draft202012Validator({"$ref": schema}, registry=self._registry, format_checker=self._formats)
        for error in validator.iter_errors(value):
            yield f"{error.json_path}: {error.message[:300]}"

    def _schema(self, operation: Operation, status: int) -> str | None:
        """Where the schema of a reply stands in the document; None when it has no JSON body there."""
        method, template = LIKE.get((operation.method, operation.template), (operation.method, operation.template))
        response = self.document["paths"][template][method]["responses"].get(str(status), {})
        pointer = f"#/paths/{_escaped(template)}/{method}/responses/{status}"
        if "$ref" in response:
            pointer = response["$ref"]
            response = self.document["components"]["responses"][pointer.rsplit("/", 1)[1]]
        if "application/json" not in response.get("content", {}):
            return None
        return f"{DOCUMENT_URI}{pointer}/content/application~1json/schema"

    def _operation(self, method: str, template: str) -> Operation:
        return next(one for one in self._operations if (one.method, one.template) == (method, template))


def _escaped(segment: str) -> str:
    return segment.replace("~", "~0").replace("/", "~1")


class Oracle:
    """Watches every reply and keeps what the contract does not allow."""

    def __init__(self) -> None:
        self._contract = Contract()
        self._violations: list[str] = []

    def take(self) -> list[str]:
        """What was found since the last time."""
        found, self._violations = self._violations, []
        return found

    def observe(self, request: httpx.Request, status: int, headers: httpx.Headers, raw: bytes) -> None:
        # Decoded on a copy: the client still gets the raw bytes.
        body = httpx.Response(status, headers=headers, content=raw).content
        for fault in self._contract.faults(request.method, request.url.path, status, headers, body):
            self._violations.append(f"{request.method} {request.url.path} -> {status}: {fault}")

    @contextmanager
    def watching(self) -> Iterator[Oracle]:
        """Looks at every reply of every httpx client of this process, sync and async."""
        send_async = httpx.AsyncHTTPTransport.handle_async_request
        send_sync = httpx.HTTPTransport.handle_request
        oracle = self

        async def watched_async(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
            if request.url.path == MCP_PATH:
                return await send_async(self, request)
            response = await send_async(self, request)
            raw = b"".join([chunk async for chunk in response.stream])
            await response.aclose()
            oracle.observe(request, response.status_code, response.headers, raw)
            return _replayed(response, raw)

        def watched_sync(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
            response = send_sync(self, request)
            raw = b"".join(response.stream)
            response.close()
            oracle.observe(request, response.status_code, response.headers, raw)
            return _replayed(response, raw)

        httpx.AsyncHTTPTransport.handle_async_request = watched_async
        httpx.HTTPTransport.handle_request = watched_sync
        try:
            yield self
        finally:
            httpx.AsyncHTTPTransport.handle_async_request = send_async
            httpx.HTTPTransport.handle_request = send_sync


def _replayed(response: httpx.Response, raw: bytes) -> httpx.Response:
    return httpx.Response(
        response.status_code, headers=response.headers, stream=httpx.ByteStream(raw), extensions=response.extensions
    )
