"""Replies that we encode are typed objects to the providers' clients, streamed or not, and mean the same to them."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2 as httpx
import openai
import pytest
from histories import FORMATS, REPLIES


def serve(body: str | dict[str, Any]) -> httpx.MockTransport:
    def answer(request: httpx.Request) -> httpx.Response:
        if isinstance(body, str):
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=body)
        return httpx.Response(200, json=body)

    return httpx.MockTransport(answer)


def openai_client(body: str | dict[str, Any]) -> openai.OpenAI:
    return openai.OpenAI(
        api_key="k", base_url="http://scripted/v1", max_retries=0, http_client=httpx.Client(transport=serve(body)),
        _strict_response_validation=True,
    )


def anthropic_client(body: str | dict[str, Any]) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        api_key="k", base_url="http://scripted", max_retries=0, http_client=httpx.Client(transport=serve(body)),
        _strict_response_validation=True,
    )


ASK: list[Any] = [{"role": "user", "content": "Q"}]


def plain(format: str, body: dict[str, Any]) -> dict[str, Any]:
    if format == "openai.chat":
        return openai_client(body).chat.completions.create(model="m", messages=ASK).model_dump(mode="json")
    if format == "openai.responses":
        return openai_client(body).responses.create(model="m", input="Q").model_dump(mode="json")
    return anthropic_client(body).messages.create(model="m", max_tokens=9, messages=ASK).model_dump(mode="json")


def streamed(format: str, body: str) -> dict[str, Any]:
    if format == "openai.chat":
        with openai_client(body).chat.completions.stream(model="m", messages=ASK) as stream:
            return stream.get_final_completion().model_dump(mode="json")
    if format == "openai.responses":
        with openai_client(body).responses.stream(model="m", input="Q") as stream:
            return stream.get_final_response().model_dump(mode="json")
    with anthropic_client(body).messages.stream(model="m", max_tokens=9, messages=ASK) as stream:
        return stream.get_final_message().model_dump(mode="json")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", REPLIES)
def test_plain_reply(bridge: Any, format: str, name: str) -> None:
    body = bridge.ask(op="reply", target=format, message=REPLIES[name])["payload"]
    read = bridge.ask(op="read", source=format, payload=plain(format, body))
    assert read["message"] == REPLIES[name]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", REPLIES)
def test_accumulators_agree(bridge: Any, format: str, name: str) -> None:
    wire = bridge.ask(op="stream", target=format, message=REPLIES[name])["wire"]
    theirs = bridge.ask(op="read", source=format, payload=streamed(format, wire))
    ours = bridge.ask(op="assemble", source=format, wire=wire)
    assert ours["complete"]
    assert ours["message"] == theirs["message"] == REPLIES[name]
    assert ours["stop_reason"] == theirs["stop_reason"]
