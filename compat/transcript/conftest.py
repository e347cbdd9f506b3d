"""The bridge to the Rust conversions: one process, one line of JSON per question."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]


class Bridge:
    """`target/debug/examples/transcript_bridge`, or what TRANSCRIPT_BRIDGE names."""

    def __init__(self) -> None:
        default = REPOSITORY / "target/debug/examples/transcript_bridge"
        binary = Path(os.environ.get("TRANSCRIPT_BRIDGE", default))
        if not binary.exists():
            pytest.exit(f"no bridge at {binary}: cargo build -p bandstand-transcript --examples", returncode=3)
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **question: Any) -> Any:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(timeout=10)


@pytest.fixture(scope="session")
def bridge() -> Iterator[Bridge]:
    bridge = Bridge()
    yield bridge
    bridge.close()
