"""Every request that we build is one that the providers' typed models accept."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import MessageParam as AnthropicMessage, TextBlockParam
from histories import FORMATS, histories
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

MODELS: dict[str, tuple[str, TypeAdapter[Any]]] = {
    "openai.chat": ("messages", TypeAdapter(list[ChatCompletionMessageParam])),
    "openai.responses": ("input", TypeAdapter(list[ResponseInputItemParam])),
    "anthropic": ("messages", TypeAdapter(list[AnthropicMessage])),
}
SYSTEM: TypeAdapter[Any] = TypeAdapter(str | list[TextBlockParam])


def consumed(value: Any) -> None:
    """Lists are typed as iterables, which are only checked when they are read."""
    if isinstance(value, dict):
        for item in value.values():
            consumed(item)
    elif not isinstance(value, str | bytes) and hasattr(value, "__iter__"):
        for item in value:
            consumed(item)


# Known holes of the types themselves, each with the reason why the payload is right all the same.
def loosened(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A refusal has no easy form, and the types want an id that only the provider could have given."""
    loose = []
    for item in items:
        content = item.get("content")
        if item.get("role") == "assistant" and isinstance(content, list) and "id" not in item:
            item = {"id": "msg_0", "status": "completed", **item}
        loose.append(item)
    return loose


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize(("name", "source", "payload"), histories(), ids=lambda value: value if isinstance(value, str) else "")
def test_request_is_typed(bridge: Any, name: str, source: str, payload: dict[str, Any], target: str) -> None:
    sent = bridge.ask(op="prepare", source=source, target=target, payload=payload)["payload"]
    key, model = MODELS[target]
    items = loosened(sent[key]) if target == "openai.responses" else sent[key]
    consumed(model.validate_python(items))
    if "system" in sent:
        consumed(SYSTEM.validate_python(sent["system"]))
