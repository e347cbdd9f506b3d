"""What the transcript cases expect on the wire is what the providers' typed models accept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from histories import CASES
from test_requests import MODELS, SYSTEM, consumed, loosened


def payloads() -> Iterator[Any]:
    """Name of the place, format and payload of everything that a case expects to be sent."""
    for path in sorted(CASES.glob("*.json")):
        case = json.loads(path.read_text())
        given, expected = case["input"], case["expected"]
        format = given.get("to") or given.get("format")
        found = [
            ("payload", expected.get("payload")),
            ("repaired", expected.get("repaired")),
            ("replay", expected.get("replay")),
            ("final_history", expected.get("final_history")),
        ]
        found += [(f"request {at}", request) for at, request in enumerate(expected.get("next_requests") or [])]
        for place, payload in found:
            if payload is not None and MODELS[format][0] in payload:
                yield pytest.param(format, payload, id=f"{path.stem} {place}")


@pytest.mark.parametrize(("format", "payload"), list(payloads()))
def test_expected_payload_is_typed(format: str, payload: dict[str, Any]) -> None:
    key, model = MODELS[format]
    items = loosened(payload[key]) if format == "openai.responses" else payload[key]
    consumed(model.validate_python(items))
    if "system" in payload:
        consumed(SYSTEM.validate_python(payload["system"]))
