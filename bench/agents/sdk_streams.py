"""A recorded stream through the provider's own Python client, several times: `sdk_streams.py FORMAT FILE ROUNDS`.

Prints how long each round took, from the bytes to the finished reply, and what the reply says.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import anthropic
import httpx2 as httpx
import openai

ASK: list[Any] = [{"role": "user", "content": "Q"}]


def serve(body: bytes) -> httpx.Client:
    """A client whose answer is there at once: no network is measured."""

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    return httpx.Client(transport=httpx.MockTransport(answer))


def chat(http: httpx.Client) -> tuple[str, list[Any]]:
    client = openai.OpenAI(api_key="k", base_url="http://recorded/v1", http_client=http)
    with client.chat.completions.stream(model="m", messages=ASK) as stream:
        message = stream.get_final_completion().choices[0].message
    return message.content or "", [json.loads(call.function.arguments) for call in message.tool_calls or []]


def responses(http: httpx.Client) -> tuple[str, list[Any]]:
    client = openai.OpenAI(api_key="k", base_url="http://recorded/v1", http_client=http)
    with client.responses.stream(model="m", input="Q") as stream:
        response = stream.get_final_response()
    calls = [json.loads(item.arguments) for item in response.output if item.type == "function_call"]
    return response.output_text, calls


def messages(http: httpx.Client) -> tuple[str, list[Any]]:
    client = anthropic.Anthropic(api_key="k", base_url="http://recorded", http_client=http)
    with client.messages.stream(model="m", max_tokens=9, messages=ASK) as stream:
        message = stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    return text, [block.input for block in message.content if block.type == "tool_use"]


def main(format: str, file: str, rounds: str) -> None:
    read = {"openai.chat": chat, "openai.responses": responses, "anthropic": messages}[format]
    http = serve(Path(file).read_bytes())
    text, arguments = read(http)  # Not timed: what is loaded or built on first use is not the stream's cost.
    seconds = []
    for _ in range(int(rounds)):
        started = time.perf_counter()
        read(http)
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"seconds": seconds, "text": text, "arguments": arguments}))


main(*sys.argv[1:])
