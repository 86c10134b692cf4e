"""A server on loopback that speaks OpenAI's chat completions. A function makes its replies."""

import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, cast

Said = str | Sequence[tuple[str, Mapping[str, Any]]]
"""What a model says: text, or calls as names and arguments."""


@dataclass(frozen=True, slots=True)
class ChatServer:
    """A running server.

    Args:
        url: For ``OPENAI_BASE_URL`` or ``OLLAMA_BASE_URL``.
        asked: The body of each request so far.
    """

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@contextmanager
def chat_server(reply: Callable[[list[dict[str, Any]]], Said]) -> Generator[ChatServer, None, None]:
    """Serve models over HTTP: real requests of a real client, without a network.

    Args:
        reply: Is handed the messages of a request, and returns what the model says.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append(body)
            if not self.path.endswith("/chat/completions"):
                self.send_error(404)
                return
            answer = json.dumps(_completion(body, reply(body["messages"]))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called
            """Say nothing: the output is the test's."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server = ChatServer(f"http://127.0.0.1:{http.server_port}/v1")
        thread = Thread(target=http.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def _completion(body: Mapping[str, Any], said: Said) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(said, str):
        message["content"] = said
    else:
        turn = len(cast("list[object]", body["messages"]))
        message["tool_calls"] = [
            {
                "id": f"call_{turn}_{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for at, (name, arguments) in enumerate(said)
        ]
    written = len(json.dumps(message)) // 4
    sent = len(json.dumps(body["messages"])) // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "stop" if isinstance(said, str) else "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": sent,
            "completion_tokens": written,
            "total_tokens": sent + written,
        },
    }
