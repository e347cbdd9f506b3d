"""Every definition of a tool and every choice that we write is one that the providers' typed models accept."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import ToolChoiceParam as AnthropicChoice, ToolUnionParam as AnthropicTool
from histories import FORMATS
from openai.types.chat import ChatCompletionToolChoiceOptionParam, ChatCompletionToolUnionParam
from openai.types.responses.response_create_params import ToolChoice as ResponsesChoice
from openai.types.responses.tool_param import ToolParam
from pydantic import TypeAdapter
from test_requests import consumed

TOOLS: dict[str, TypeAdapter[Any]] = {
    "openai.chat": TypeAdapter(list[ChatCompletionToolUnionParam]),
    "openai.responses": TypeAdapter(list[ToolParam]),
    "anthropic": TypeAdapter(list[AnthropicTool]),
}
CHOICES: dict[str, TypeAdapter[Any]] = {
    "openai.chat": TypeAdapter(ChatCompletionToolChoiceOptionParam),
    "openai.responses": TypeAdapter(ResponsesChoice),
    "anthropic": TypeAdapter(AnthropicChoice),
}

SCHEMA = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "lines": {"type": ["integer", "null"]}},
    "required": ["path", "lines"],
    "additionalProperties": False,
}
CHAT = {
    "plain": {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": SCHEMA}},
    "strict": {"type": "function", "function": {"name": "read", "parameters": SCHEMA, "strict": True}},
    "renamed": {"type": "function", "function": {"name": "fs.read/all", "parameters": SCHEMA}},
    "no parameters": {"type": "function", "function": {"name": "now"}},
    "alternatives": {
        "type": "function",
        "function": {"name": "find", "parameters": {"oneOf": [SCHEMA, {"type": "object", "properties": {"$id": {}}}]}},
    },
    "free text": {"type": "custom", "custom": {"name": "patch", "format": {"type": "text"}}},
    "grammar": {
        "type": "custom",
        "custom": {
            "name": "patch",
            "description": "Patches.",
            "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /.+/"}},
        },
    },
}


def named(tool: dict[str, Any]) -> dict[str, Any]:
    kind = tool["type"]
    return {"type": kind, kind: {"name": tool[kind]["name"]}}


def requests() -> list[tuple[str, dict[str, Any]]]:
    """Each tool alone with each choice, in the form of Chat Completions."""
    found = []
    for name, tool in CHAT.items():
        choices: dict[str, Any] = {
            "unsaid": None,
            "auto": "auto",
            "required": "required",
            "none": "none",
            "one": named(tool),
            "some": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named(tool)]}},
        }
        for which, choice in choices.items():
            for parallel in (None, False):
                request = {"tools": [tool], "tool_choice": choice, "parallel_tool_calls": parallel}
                request = {key: value for key, value in request.items() if value is not None}
                found.append((f"{name}, {which}, {parallel}", request))
    return found


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize(("name", "request_"), requests(), ids=lambda value: value if isinstance(value, str) else "")
def test_offer_is_typed(bridge: Any, name: str, request_: dict[str, Any], source: str, target: str) -> None:
    given = bridge.ask(op="offer", source="openai.chat", target=source, payload=request_)["payload"]
    sent = bridge.ask(op="offer", source=source, target=target, payload=given)["payload"]
    assert len(sent["tools"]) == 1
    consumed(TOOLS[target].validate_python(sent["tools"]))
    if "tool_choice" in sent:
        consumed(CHOICES[target].validate_python(sent["tool_choice"]))
    assert isinstance(sent.get("parallel_tool_calls", False), bool)
