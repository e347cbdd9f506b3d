"""What a client shows its caller when the server refuses: the exception's type, the status, and the contract's code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from band_rest.core.api_error import ApiError
from band_rest.core.request_options import RequestOptions

# The generated clients repeat 409, 429 and 5xx for seconds; a refusal that is expected must not be repeated.
NO_RETRY: RequestOptions = {"max_retries": 0}


@dataclass(frozen=True)
class Refusal:
    """A refusal as the caller meets it. Message and details are for people, so they do not take part in equality."""

    error: str
    status: int
    code: str
    message: str = field(default="", compare=False)
    details: dict[str, Any] = field(default_factory=dict, compare=False)

    def names(self, pointer: str) -> bool:
        """Whether a validation error names the field at fault."""
        return bool(self.details.get(pointer))


BAD_REQUEST = Refusal("BadRequestError", 400, "bad_request")
UNAUTHORIZED = Refusal("UnauthorizedError", 401, "unauthorized")
FORBIDDEN = Refusal("ForbiddenError", 403, "forbidden")
SOLE_OWNER = Refusal("ForbiddenError", 403, "cannot_remove_sole_owner")
NOT_FOUND = Refusal("NotFoundError", 404, "not_found")
# No generated client declares 409 on the participants' routes, so it arrives untyped.
CONFLICT = Refusal("ApiError", 409, "conflict")
# On those of contacts they do.
CONTACT_CONFLICT = Refusal("ConflictError", 409, "conflict")
INVALID = Refusal("UnprocessableEntityError", 422, "validation_error")


def unprocessable(code: str) -> Refusal:
    return Refusal("UnprocessableEntityError", 422, code)


def untyped(refusal: Refusal) -> Refusal:
    """The same refusal from a method whose client does not declare the status."""
    return Refusal("ApiError", refusal.status, refusal.code)


async def refused(
    method: Callable[..., Awaitable[Any]], *arguments: Any, request_options: RequestOptions | None = None, **named: Any
) -> Refusal:
    """Calls a generated client method that must be refused, once."""
    try:
        answer = await method(*arguments, request_options={**(request_options or {}), **NO_RETRY}, **named)
    except ApiError as error:
        return _of_client(error)
    raise AssertionError(f"not refused: {answer!r}")


def refused_raw(reply: httpx.Response) -> Refusal:
    """The refusal in a raw reply, for what the generated clients cannot send."""
    assert reply.is_error, f"not refused: {reply.status_code} {reply.text}"
    return _of_body("raw", reply.status_code, reply.json())


def raw(refusal: Refusal) -> Refusal:
    """A typed refusal as [`refused_raw`] shows it."""
    return Refusal("raw", refusal.status, refusal.code)


def _of_client(error: ApiError) -> Refusal:
    body = error.body if isinstance(error.body, dict) else error.body.model_dump()
    assert error.status_code is not None
    return _of_body(type(error).__name__, error.status_code, body)


def _of_body(kind: str, status: int, body: dict[str, Any]) -> Refusal:
    envelope = body["error"]
    return Refusal(kind, status, envelope["code"], envelope["message"], envelope.get("details") or {})
