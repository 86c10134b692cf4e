"""What all tests share: asyncio as the event loop, and property tests that repeat."""

import ast
import asyncio
import inspect
import re
import secrets
import socket
from collections.abc import (
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart
    from pydantic_ai.models.function import AgentInfo

    from coatcheck.testing import S3Server, Server, Wire

pytest.register_assert_rewrite("coatcheck.testing")

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],  # how fast the machine is proves nothing
)
settings.register_profile(
    "soak", settings.get_profile("suite"), derandomize=False, max_examples=5_000, print_blob=True
)
settings.load_profile("suite")


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Let the report of a test that logs a lone surrogate travel between processes."""
    return _encodable((yield))


def _encodable(part: object) -> object:
    if isinstance(part, str):
        return part.encode(errors="backslashreplace").decode()
    if isinstance(part, dict):
        named = cast("dict[object, object]", part)
        return {_encodable(key): _encodable(value) for key, value in named.items()}
    if isinstance(part, list | tuple):
        parts = map(_encodable, cast("Sequence[object]", part))
        return tuple(parts) if isinstance(part, tuple) else list(parts)
    return part


_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _blocks(page: Path, language: str) -> Iterator[tuple[int, str]]:
    text = page.read_text("utf-8")
    for match in _BLOCK.finditer(text):
        if match[1] == language:
            yield text.count("\n", 0, match.start(2)), match[2]


@pytest.fixture
def blocks() -> Callable[[Path, str], Iterable[tuple[int, str]]]:
    """Return what yields each block of a language: the lines of the page before it, its text."""
    return _blocks


@pytest.fixture
def run_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], int]:
    """Return what runs the Python blocks of a page, in one namespace and an empty folder.

    It tells how many there were.
    """

    def run(page: Path) -> int:
        monkeypatch.chdir(tmp_path)
        names: dict[str, object] = {"__name__": "example"}
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        found = list(_blocks(page, "python"))
        for line_number, source in found:
            code = compile("\n" * line_number + source, str(page), "exec", flags, dont_inherit=True)
            waiting: object = eval(code, names)
            if inspect.iscoroutine(waiting):
                asyncio.run(waiting)
        return len(found)

    return run


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[S3Server]":
    """Return an S3 server that all tests share: each takes a prefix of its own."""
    from coatcheck.testing import s3_server  # not before its asserts are rewritten

    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Server]":
    """Return a Redis server that all tests share: each takes a prefix of its own."""
    from coatcheck.testing import redis_server

    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_url(redis: "Server") -> Iterator[str]:
    """Return the address of an empty store on the shared Redis server."""
    yield f"{redis.url}?prefix={secrets.token_hex(6)}:"
    # So that a test that looks at all keys of the server has but its own to look at.
    with socket.create_connection(("127.0.0.1", redis.port)) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        connection.recv(5)


@pytest.fixture
async def wire(redis: "Server") -> "AsyncIterator[Wire]":
    """Return a way to the shared Redis server that can lose commands and answers."""
    from coatcheck.testing import wire_to

    async with wire_to(redis.port) as wire:
        yield wire


class Script:
    """A model of pydantic-ai whose replies are written down, and who keeps what it was asked.

    A turn is a text, a call as ``(tool, arguments)``, a list of both, an exception to raise, or a
    function that makes one of them from the messages so far.

    Args:
        turns: In order; or by a word of the first message of a step, in order for each.
    """

    def __init__(self, turns: Sequence[Any] | Mapping[str, Sequence[Any]]) -> None:
        from pydantic_ai.models.function import FunctionModel

        given = turns if isinstance(turns, Mapping) else {"": turns}
        self._turns = {word: list(each) for word, each in given.items()}
        self.asked: list[list[ModelMessage]] = []
        self.offers: list[AgentInfo] = []
        self.model = FunctionModel(self._reply, model_name="scripted")

    def first(self, word: str = "") -> str:
        """Return the first message that the model was sent for a step with this word in it."""
        return user_text(next(each for each in self.asked if word in _instructions(each)))

    def system(self, word: str = "") -> str:
        """Return the system prompt of a step with this word in its first message."""
        asked = next(each for each in self.asked if word in _instructions(each))
        return str(asked[0].parts[0].content)  # type: ignore[union-attr]

    def returned(self, word: str = "") -> list[str]:
        """Return what calls returned to a step, as its last request shows it."""
        asked = [each for each in self.asked if word in _instructions(each)][-1]
        return [
            str(part.content)
            for message in asked
            for part in message.parts
            if part.part_kind == "tool-return"
        ]

    async def _reply(self, messages: "list[ModelMessage]", info: "AgentInfo") -> "ModelResponse":
        from pydantic_ai.messages import ModelResponse

        self.asked.append(list(messages))
        self.offers.append(info)
        asked = _instructions(messages)
        word = max((each for each in self._turns if each in asked), key=len)
        assert self._turns[word], f"the script for {word!r} is at its end"
        given = self._turns[word].pop(0)
        turn: Any = given(messages) if callable(given) else given
        if isinstance(turn, Exception):
            raise turn
        return ModelResponse(parts=_parts(turn))


def _parts(turn: "str | tuple[str, Any] | list[Any]") -> "list[ModelResponsePart]":
    from pydantic_ai.messages import TextPart, ToolCallPart

    if isinstance(turn, str):
        return [TextPart(turn)]
    if isinstance(turn, tuple):
        return [ToolCallPart(*turn)]
    return [part for each in turn for part in _parts(each)]


def user_text(messages: "Sequence[ModelMessage]") -> str:
    """Return the first message of a user."""
    return next(str(part.content) for part in messages[0].parts if part.part_kind == "user-prompt")


def _instructions(messages: "Sequence[ModelMessage]") -> str:
    """Return a first message without what it names of memory: titles hold words of other steps."""
    return user_text(messages).partition("\n\n# Required upstream")[0]


@pytest.fixture
def scripted() -> Callable[..., Script]:
    """Return what makes a scripted model of its turns."""
    return Script
