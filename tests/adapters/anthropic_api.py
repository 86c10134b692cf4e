"""What answers in place of Anthropic's hosted API, for its real client."""

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
from anthropic import Anthropic, AsyncAnthropic

from coatcheck.testing import PROMPT, ScriptedModel, Turn

ASKED: dict[str, Any] = {
    "model": "scripted",
    "max_tokens": 1_000,
    "messages": [{"role": "user", "content": PROMPT}],
}


class Api:
    """What answers in place of the hosted API: it speaks its protocol, plain and streamed."""

    def __init__(self, script: Sequence[Turn]) -> None:
        self.script = ScriptedModel(script)
        self.requests: list[dict[str, Any]] = []
        self.results: dict[str, dict[str, Any]] = {}
        self.images: list[bytes] = []
        self._held: dict[str, dict[str, Any]] = {}

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request with the next turn of the script."""
        asked = self._whole(json.loads(request.content))
        self.requests.append(asked)
        said = self.script.reply(self._text(asked), dict(self._read(asked["messages"])))
        content: list[dict[str, Any]] = (
            [{"type": "text", "text": said}]
            if isinstance(said, str)
            else [
                {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
                for call in said
            ]
        )
        message: dict[str, Any] = {
            "id": f"msg_{len(self.requests)}",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": content,
            "stop_reason": "end_turn" if isinstance(said, str) else "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        self._held[message["id"]] = asked | {"messages": [*asked["messages"], _turn(content)]}
        if not asked.get("stream"):
            return httpx2.Response(200, json=message)
        events = "".join(
            f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in _events(message)
        )
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, content=events.encode(), headers=headers)

    async def answer_later(self, request: httpx2.Request) -> httpx2.Response:
        """Answer a request of the async client."""
        return self.answer(request)

    def client(self) -> Anthropic:
        """Return a client of it."""
        transport = httpx2.MockTransport(self.answer)
        return Anthropic(
            api_key="none", max_retries=0, http_client=httpx2.Client(transport=transport)
        )

    def async_client(self) -> AsyncAnthropic:
        """Return an async client of it."""
        transport = httpx2.MockTransport(self.answer_later)
        return AsyncAnthropic(
            api_key="none", max_retries=0, http_client=httpx2.AsyncClient(transport=transport)
        )

    def _whole(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return a request with what the API holds of its conversation."""
        thread: dict[str, Any] = asked.get("thread") or {}
        if thread.get("type") != "continue":
            return asked
        held = self._held[thread["previous_message_id"]]
        return held | asked | {"messages": [*held["messages"], *asked["messages"]]}

    def _text(self, asked: dict[str, Any]) -> str:
        system = asked["system"]
        told = system if isinstance(system, str) else json.dumps(system, ensure_ascii=False)
        rest = [asked["tools"], asked["messages"]]
        return "\n".join([told, *(json.dumps(part, ensure_ascii=False) for part in rest)])

    def _read(self, messages: Sequence[Any]) -> Iterator[tuple[str, str]]:
        blocks = [
            block
            for message in messages
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        for block in blocks:
            if block["type"] != "tool_result":
                continue
            self.results[block["tool_use_id"]] = block
            content = block["content"]
            plain = [{"type": "text", "text": content}]
            parts: list[dict[str, Any]] = plain if isinstance(content, str) else content
            for part in parts:
                if part["type"] == "image":
                    self.images.append(b64decode(part["source"]["data"]))
            yield (
                block["tool_use_id"],
                "".join(part["text"] for part in parts if part["type"] == "text"),
            )


def _turn(content: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start = {**block, "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": dict[str, Any]()}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}
