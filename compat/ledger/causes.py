"""The fault matrix: what the ledger says for each cause and each kind of client, and why a cause may not apply."""

from __future__ import annotations

from dataclasses import dataclass

SDK, BARE, MCP = "band-sdk", "bare socket", "band-mcp"
CLIENTS = (SDK, BARE, MCP)

NO_SOCKET = "has no socket"
TAKES_NOTHING = "has no tool that takes a message"


@dataclass(frozen=True)
class Answer:
    """The right answer: a stage, and a reason where nothing happened."""

    stage: str
    reason: str | None = None

    def __str__(self) -> str:
        return f"`{self.stage}`" if self.reason is None else f"`{self.stage}`, `{self.reason}`"


@dataclass(frozen=True)
class Not:
    """The cause cannot be brought about with this client."""

    why: str

    def __str__(self) -> str:
        return f"– ({self.why})"


@dataclass(frozen=True)
class Cause:
    """What keeps an agent from answering."""

    key: str
    text: str
    answers: dict[str, Answer | Not]
    # What the ledger may rightly say before the server can know of the cause.
    before: tuple[Answer, ...] = ()


def _all(answer: Answer | Not) -> dict[str, Answer | Not]:
    return dict.fromkeys(CLIENTS, answer)


def _each(sdk: Answer | Not, bare: Answer | Not, mcp: Answer | Not) -> dict[str, Answer | Not]:
    return {SDK: sdk, BARE: bare, MCP: mcp}


_WORKING = Answer("picked_up")
_STORED = Answer("stored", "not_taken")
_PUSHED = Answer("pushed", "not_taken")

CAUSES = (
    Cause("not_mentioned", "the message mentions somebody else", _all(Answer("none", "not_mentioned"))),
    Cause("reference", "the message only refers to it", _all(Answer("none", "not_mentioned"))),
    Cause("joined_later", "it was added to the room after the message", _all(Answer("none", "not_a_participant"))),
    Cause("left_before", "it was removed before the message", _all(Answer("none", "not_a_participant"))),
    Cause("never_started", "its program was never started", _all(Answer("stored", "never_connected"))),
    Cause(
        "socketless",
        "its program runs without a socket and fetches nothing",
        _each(Not("always has a socket"), Not("is a socket"), Answer("stored", "never_connected")),
    ),
    Cause(
        "ended",
        "its program ended before the message",
        _each(Answer("stored", "offline"), Answer("stored", "offline"), Not(NO_SOCKET)),
        before=(_STORED, _PUSHED),
    ),
    Cause(
        "killed",
        "its program was killed in the middle of its work",
        _each(Answer("picked_up", "offline"), Answer("picked_up", "offline"), Not(TAKES_NOTHING)),
        before=(_WORKING, Answer("picked_up", "no_activity")),
    ),
    Cause(
        "server_crashed",
        "the server crashed, and its program did not come back",
        _each(Answer("picked_up", "offline"), Answer("picked_up", "offline"), Not(NO_SOCKET)),
        before=(_WORKING,),
    ),
    Cause(
        "busy",
        "it works on an older message of the room",
        _each(_PUSHED, _PUSHED, Not(TAKES_NOTHING)),
        before=(_STORED,),
    ),
    Cause(
        "deaf",
        "it is connected but does not listen in the room",
        _each(Not("joins all its rooms"), _STORED, Not(NO_SOCKET)),
    ),
    Cause(
        "idle",
        "it heard the message and does nothing",
        _each(Not("takes what it hears"), _PUSHED, Not(NO_SOCKET)),
        before=(_STORED,),
    ),
    Cause(
        "working",
        "it works on the message and says so",
        _each(_WORKING, _WORKING, Not(TAKES_NOTHING)),
        before=(_STORED, _PUSHED),
    ),
    Cause(
        "hanging",
        "it took the message and hangs",
        _each(Answer("picked_up", "no_activity"), Answer("picked_up", "no_activity"), Not(TAKES_NOTHING)),
        before=(_STORED, _PUSHED, _WORKING),
    ),
    Cause("stopped", "a person stopped it before the message", _all(Answer("stored", "stopped"))),
    Cause(
        "stopped_at_work",
        "a person stopped it in the middle of its work",
        _each(Answer("picked_up", "stopped"), Answer("picked_up", "stopped"), Not(TAKES_NOTHING)),
    ),
    Cause(
        "replaced",
        "a second program with the same key took its place and does nothing",
        _each(Answer("picked_up", "superseded"), Answer("pushed", "superseded"), Not(NO_SOCKET)),
        before=(_WORKING, _STORED, _PUSHED),
    ),
    Cause(
        "refused",
        "its connections are refused for being too many",
        _each(Answer("stored", "rate_limited"), Answer("stored", "rate_limited"), Not(NO_SOCKET)),
        before=(Answer("stored", "never_connected"), Answer("stored", "offline"), _STORED),
    ),
    Cause(
        "limited",
        "its requests are refused for being too many",
        _each(Answer("pushed", "rate_limited"), Answer("pushed", "rate_limited"), Answer("stored", "rate_limited")),
        before=(_STORED, _PUSHED, Answer("stored", "never_connected"), Answer("stored", "rate_limited")),
    ),
    Cause(
        "failed",
        "it tried and failed",
        _each(Answer("failed"), Answer("failed"), Not(TAKES_NOTHING)),
        before=(_STORED, _PUSHED, _WORKING),
    ),
    Cause(
        "declined",
        "it decided not to answer",
        _each(Answer("processed"), Answer("processed"), Not(TAKES_NOTHING)),
        before=(_STORED, _PUSHED, _WORKING),
    ),
    Cause(
        "replied",
        "nothing: it answered",
        _each(Answer("processed"), Answer("processed"), Not(TAKES_NOTHING)),
        before=(_STORED, _PUSHED, _WORKING),
    ),
    Cause(
        "lapsed",
        "its program was killed at work, and the attempt has lapsed",
        _each(Answer("lapsed", "offline"), Answer("lapsed", "offline"), Not(TAKES_NOTHING)),
        before=(_WORKING, Answer("picked_up", "no_activity"), Answer("picked_up", "offline")),
    ),
    Cause(
        "expired",
        "nobody started its program for longer than a message may wait",
        _all(Answer("dead_lettered", "expired")),
        before=(Answer("stored", "never_connected"),),
    ),
    Cause(
        "exhausted",
        "it failed as often as it may",
        _each(Answer("dead_lettered"), Answer("dead_lettered"), Not(TAKES_NOTHING)),
        before=(_STORED, _PUSHED, _WORKING),
    ),
    Cause("removed", "it was removed while the message waited", _all(Answer("cancelled"))),
)


def table() -> str:
    """The matrix as it stands in the documentation."""
    lines = ["| cause | " + " | ".join(CLIENTS) + " |", "| --- |" + " --- |" * len(CLIENTS)]
    lines += [f"| {one.text} | " + " | ".join(str(one.answers[client]) for client in CLIENTS) + " |" for one in CAUSES]
    return "\n".join(lines)
