"""A model that says what the test tells it to, over HTTP: `crates/testkit/examples/scripted_model.rs`.

It answers in the form of whichever of the three APIs it is asked, and refuses a history with a call or a result alone.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import Any

from harness.paths import REPOSITORY

PROGRAM = REPOSITORY / "target" / "debug" / "examples" / "scripted_model"
# A reply comes in pieces that cut words, characters and events alike.
PIECE_BYTES = 7
ENDS_WITHIN_S = 10

Part = dict[str, Any]
Answer = dict[str, Any]


def says(words: str) -> Answer:
    return {"says": words}


def does(*parts: Part) -> Answer:
    """A reply of parts, in the canonical form."""
    return {"parts": list(parts)}


def refuses(status: int, kind: str, message: str) -> Answer:
    return {"status": status, "body": {"error": {"type": kind, "message": message}}}


def text(words: str) -> Part:
    return {"type": "text", "text": words}


def call(id: str, tool: str, **arguments: Any) -> Part:
    return {"type": "tool_call", "id": id, "name": tool, "arguments": arguments}


@dataclass(frozen=True)
class Asked:
    """A request as the model got it."""

    api: str
    body: dict[str, Any]


class ScriptedModel:
    """The program; it remembers what it is asked, in order."""

    def __init__(self) -> None:
        assert PROGRAM.is_file(), f"no program at {PROGRAM}: cargo build -p bandstand-testkit --example scripted_model"
        command = [str(PROGRAM), str(PIECE_BYTES)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._seen = 0
        self.url: str = self._read()["url"]

    def then(self, *answers: Answer) -> None:
        """One answer for each of the next requests."""
        self._tell({"then": list(answers)})

    def asked(self) -> list[Asked]:
        """The requests since this was last called; a history that a provider would refuse fails."""
        told = self._tell({"asked_since": self._seen})
        self._seen += len(told["asked"])
        assert told["faults"] == [], "a provider would refuse"
        return [Asked(one["api"], one["body"]) for one in told["asked"]]

    def close(self) -> None:
        """Ends it; it says by its exit code whether it was sent what a provider would refuse."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        assert code == 0, f"the scripted model ended with {code}"

    def _tell(self, command: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the scripted model ended with {self._process.wait(ENDS_WITHIN_S)}"
        return json.loads(line)
