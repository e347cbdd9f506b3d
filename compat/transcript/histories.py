"""The conversations that the tests convert: those of the transcript cases, and some wider ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CASES = Path(__file__).parents[2] / "crates/transcript/tests/cases"
FORMATS = ["openai.chat", "openai.responses", "anthropic"]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def result(id: str, content: list[dict[str, Any]], is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "call_id": id, "content": content, "is_error": is_error}


IMAGE = {"type": "image", "media_type": "image/png", "data": PIXEL}

WIDE = {
    "messages": [
        {"role": "system", "parts": [text("Be brief.")]},
        {"role": "user", "parts": [text("What is this?"), IMAGE, {"type": "image", "url": "https://example.org/a.png"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "text": "hm", "signature": "s", "format": "anthropic"},
                {"type": "reasoning", "text": "hm", "signature": "e", "format": "openai.responses", "id": "rs_1"},
                text("Looking."),
                call("call_1", "look", {"deep": {"list": [1, None, "ü"]}}),
                call("call_2", "look", {}),
            ],
        },
        {
            "role": "tool",
            "parts": [result("call_2", [text("a ship"), IMAGE]), result("call_1", [text("no such file")], True)],
        },
        {"role": "user", "parts": [text("And this?")]},
        {"role": "assistant", "parts": [text("A buoy."), text("A red one.")]},
        {"role": "system", "parts": [text("Be briefer.")]},
        {"role": "user", "parts": [text("Thanks \U0001f6a2")]},
    ]
}


def histories() -> list[tuple[str, str, dict[str, Any]]]:
    """Name, format (or `canonical`) and payload of each."""
    found = [("wide", "canonical", WIDE)]
    for path in sorted(CASES.glob("*.json")):
        case = json.loads(path.read_text())
        given = case["input"]
        if case["kind"] == "convert" and given.get("shape") != "response":
            payload = given.get("canonical") or given["payload"]
            format = "canonical" if "canonical" in given else given.get("from") or given["format"]
            found.append((path.stem, format, payload))
        elif case["kind"] == "lint" and "payload" in given:
            found.append((path.stem, given["format"], given["payload"]))
        elif case["kind"] == "loop" and "messages" in given["history"]:
            found.append((path.stem, given["format"], given["history"]))
    return found


REPLIES: dict[str, dict[str, Any]] = {
    "text": {"role": "assistant", "parts": [text("Ahoy, 世界 \U0001f6a2")]},
    "call": {"role": "assistant", "parts": [call("call_1", "look", {"at": "pier"})]},
    "text and calls": {
        "role": "assistant",
        "parts": [text("Looking."), call("call_1", "look", {"deep": {"a": [1, 2]}}), call("call_2", "wait", {})],
    },
}
