"""A model behind OpenAI Chat Completions that says what a test tells it to."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Model:
    """Answers each request with the next of its replies: a text, or calls as (name on the wire, arguments)."""

    def __init__(self) -> None:
        self.replies: list[str | list[tuple[str, dict[str, Any]]]] = []
        self.asked: list[dict[str, Any]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802 (the library's name)
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                body = json.dumps(model._answer(request)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing is logged."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def offered(self) -> dict[str, dict[str, Any]]:
        """The tools of the last request, by their names on the wire."""
        return {tool["function"]["name"]: tool["function"] for tool in self.asked[-1]["tools"]}

    def results(self) -> dict[str, Any]:
        """What the last request says of each call: by its id, the content of its result."""
        return {row["tool_call_id"]: row["content"] for row in self.asked[-1]["messages"] if row["role"] == "tool"}

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        reply = self.replies.pop(0) if self.replies else "Nothing is left to say."
        if isinstance(reply, str):
            message, reason = {"role": "assistant", "content": reply}, "stop"
        else:
            calls = [
                {
                    "id": f"call_{len(self.asked)}_{number}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for number, (name, arguments) in enumerate(reply)
            ]
            message, reason = {"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls"
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {"id": "r", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice]}
