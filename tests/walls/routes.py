"""Every route to an artifact, as a caller and as a model has it."""

import asyncio
import json
from collections.abc import Awaitable, Callable

from coatcheck import Bank, Mirror, mirror
from coatcheck.adapters import _files
from coatcheck.mirror import background
from coatcheck.tools import artifact_tools, poll_tools, read_artifact_resource, retrieval_tools

OWN = "own rows"
"""A name that whoever asks has given to rows of their own."""
THIRD = "third"

Route = Callable[[Bank, str], Awaitable[object]]


async def tool_reply(bank: Bank, which: str, **arguments: object) -> str:
    """Return what one of all the tools that a model may be given replies."""
    tools = [*retrieval_tools(bank), *artifact_tools(bank), *poll_tools(bank)]
    (tool,) = [tool for tool in tools if tool.name == which]
    return await tool.call(arguments)


async def _each(bank: Bank, *pointers: str) -> list[object]:
    return [value async for value in bank.get_each(pointers)]


async def _listed(bank: Bank) -> list[str]:
    return [artifact.pointer async for artifact in bank.list(granted=True)]


def _uri(asked: str) -> str:
    return f"art://{asked.removeprefix('art:')}"


def _sync(value: object) -> object:
    return value


def _typed(rows: list[dict[str, object]]) -> object:
    return rows


async def _waiting(value: object, more: list[object] | None = None) -> object:
    return value if more is None else more


ROUTES: dict[str, Route] = {
    "find": lambda bank, asked: bank.find(asked),
    "get": lambda bank, asked: bank.get(asked),
    "get as a type": lambda bank, asked: bank.get(asked, list[dict[str, object]]),
    "get_each": lambda bank, asked: _each(bank, OWN, asked),
    "payload": lambda bank, asked: bank.payload(asked),
    "read": lambda bank, asked: bank.read(asked),
    "read lines": lambda bank, asked: bank.read(asked, 0, 5, "lines"),
    "read rows": lambda bank, asked: bank.read(asked, 0, 5, "rows"),
    "read bytes": lambda bank, asked: bank.read(asked, 0, 5, "bytes"),
    "search": lambda bank, asked: bank.search(asked, "secret"),
    "search a pattern": lambda bank, asked: bank.search(asked, "s.cret", regex=True),
    "query in SQL": lambda bank, asked: bank.query(asked, "SELECT count(*) FROM data"),
    "query in JSONPath": lambda bank, asked: bank.query(asked, "$[*].secret"),
    "query in JMESPath": lambda bank, asked: bank.query(asked, "[].secret"),
    "query as a table": lambda bank, asked: bank.query({"t": asked}, "SELECT * FROM t"),
    "query a quoted table": lambda bank, asked: bank.query(OWN, f'SELECT * FROM "{asked}"'),
    "query and save": lambda bank, asked: bank.query(asked, "SELECT 1 FROM data", save_as="s"),
    "mirrored": lambda bank, asked: mirror(_waiting, bank)(asked),
    "mirrored, nested": lambda bank, asked: mirror(_waiting, bank)(1, [{"deep": [asked]}]),
    "mirrored, sync": lambda bank, asked: asyncio.to_thread(mirror(_sync, bank), asked),
    "resolved": lambda bank, asked: Mirror(bank).resolve({"x": asked, "own": OWN}),
    "resolved of JSON": lambda bank, asked: Mirror(bank).resolve(json.dumps({"x": [asked]})),
    "resolved as text": lambda bank, asked: Mirror(bank).resolve(
        {"x": asked}, {"properties": {"x": {"type": "string"}}}
    ),
    "retrieve_context reads": lambda bank, asked: tool_reply(
        bank, "retrieve_context", artifactId=asked
    ),
    "retrieve_context searches": lambda bank, asked: tool_reply(
        bank, "retrieve_context", artifactId=asked, search="secret"
    ),
    "retrieve_context queries": lambda bank, asked: tool_reply(
        bank, "retrieve_context", artifactId=asked, query="SELECT * FROM data", saveAs="s"
    ),
    "retrieve_context joins": lambda bank, asked: tool_reply(
        bank, "retrieve_context", artifactId=OWN, query=f'SELECT * FROM data, "{asked}"'
    ),
    "getArtifact": lambda bank, asked: tool_reply(bank, "getArtifact", pointerOrName=asked),
    "resource": lambda bank, asked: read_artifact_resource(bank, _uri(asked)),
    "resource, a window": lambda bank, asked: read_artifact_resource(
        bank, f"{_uri(asked)}?offset=0&limit=5"
    ),
    "file read": lambda bank, asked: _files.read(bank, f"/{asked}", 0, 5, 1_000),
    "file as bytes": lambda bank, asked: _files.payload(bank, f"/{asked}"),
    "inherited": lambda bank, asked: bank.scoped("child", inherit=True).get(asked),
    "inherited in SQL": lambda bank, asked: bank.scoped("child", inherit=True).query(
        OWN, f'SELECT count(*) FROM data, "{asked}"'
    ),
}
"""Routes that read. With a selector, and without one."""
TYPED: dict[str, Route] = {
    "mirrored, typed": lambda bank, asked: asyncio.to_thread(mirror(_typed, bank), asked),
    "mirrored, background": lambda bank, asked: background(_waiting, bank)(asked),
}
"""Routes that take a text that is no pointer for a value."""
WHOLE: dict[str, Route] = {
    "delete": lambda bank, asked: bank.delete(asked),
    "grant": lambda bank, asked: bank.grant(asked, to_scope=THIRD),
    "revoke": lambda bank, asked: bank.revoke(asked, from_scope=THIRD),
    "revoke from itself": lambda bank, asked: bank.revoke(asked, from_scope=bank.scope),
    "inherit and grant": lambda bank, asked: bank.scoped("child", inherit=True).grant(asked, THIRD),
    "list": lambda bank, _asked: _listed(bank),
    "file edited": lambda bank, asked: _files.edit(bank, f"/{asked}", lambda text: (text, 1)),
    "files in": lambda bank, asked: _files.files_in(bank, f"/{asked}"),
    "files searched": lambda bank, asked: _files.search(bank, f"/{asked}", None, "secret", 5),
    "listArtifacts": lambda bank, _asked: tool_reply(bank, "listArtifacts"),
}
"""Routes that take no selector, or nothing at all."""
HANDLES: dict[str, Route] = {
    "poll": lambda bank, asked: bank.handles.poll(asked),
    "pollResult": lambda bank, asked: tool_reply(bank, "pollResult", handle=asked),
    "read": ROUTES["read"],
    "getArtifact": ROUTES["getArtifact"],
    "mirrored": ROUTES["mirrored"],
}
SELECTORS = ["#/0/secret", "#$[*].secret", "#L1-L2", "#line=0,1", "#char=0,9", "#row=1-2"]
