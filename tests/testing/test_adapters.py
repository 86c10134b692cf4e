"""The suite is worth something only where it fails on an adapter that is wrong."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio import to_thread
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs, to_json

from coatcheck import Bank, Envelope, Limits
from coatcheck.adapters._sessions import SYSTEM_TEXT, Session, Sessions, check_names
from coatcheck.bank import misfit
from coatcheck.mirror import definition
from coatcheck.testing import (
    INSTRUCTIONS,
    PROMPT,
    AdapterSuite,
    How,
    ModelCall,
    ScriptedModel,
    Seen,
    Turn,
)
from coatcheck.tools import Failure, as_failure

pytest_plugins = ["pytester"]


@dataclass(frozen=True)
class Context:
    """What this loop hands to tools beside their arguments."""

    turn: int


@dataclass(frozen=True)
class Injecting:
    """A tool whose first parameter is a `Context`."""

    take: Callable[[object, list[dict[str, int]]], str]


class Loop(AdapterSuite):
    """An agent loop of a few lines, with an adapter that does all there is to do."""

    async def run(
        self,
        bank: Bank,
        tools: Sequence[Any],
        script: Sequence[Turn],
        *,
        session: str | None = None,
        limits: Limits | None = None,
        how: How = "async",
    ) -> Seen:
        sessions = Sessions(bank, limits)
        check_names((getattr(tool, "__name__", None) for tool in tools), sessions.tools)
        run = partial(self.answer, self.of(sessions, session), tools, script)
        return await (to_thread.run_sync(anyio.run, run) if how == "sync" else run())

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return self.of(Sessions(bank), session).bank

    def photo(self, text: str, image: bytes) -> Any:
        def photo() -> Any:
            """Take a photo."""
            return text, image

        return photo

    def injecting(self, take: Callable[[object, list[dict[str, int]]], str]) -> Any:
        return Injecting(take)

    def of(self, sessions: Sessions, session: str | None) -> Session:
        return sessions.of(session)

    def system(self, turn: int) -> str:
        return f"{INSTRUCTIONS}\n{SYSTEM_TEXT}"

    def schema(self, session: Session, schema: Mapping[str, Any]) -> object:
        return session.mirror.schema(schema)

    async def answer(self, session: Session, tools: Sequence[Any], script: Sequence[Turn]) -> Seen:
        self.images: list[bytes] = []
        model, history, results = ScriptedModel(script), [PROMPT], dict[str, str]()
        by_name = dict(map(self.tool, tools))
        while True:
            listed = [self.schema(session, schema) for schema, _ in by_name.values()]
            own = [dict(tool.parameters) | {"name": tool.name} for tool in session.tools.values()]
            head = [self.system(len(history)), json.dumps([listed, own], ensure_ascii=False)]
            said = model.reply("\n".join([*head, *history]), results)
            if isinstance(said, str):
                return Seen(
                    requests=model.requests,
                    results=model.results,
                    history="\n".join(history),
                    output=said,
                    images=self.images,
                )
            for call in said:
                arguments = dict(call.arguments)
                history.append(f"{call.name} {json.dumps(arguments)}")
                results[call.id] = await self.result(session, by_name, call, arguments)
                history.append(f"{results[call.id]} for {history.pop()}")

    async def result(
        self,
        session: Session,
        tools: Mapping[str, tuple[Mapping[str, Any], Callable[..., Any]]],
        call: ModelCall,
        arguments: dict[str, object],
    ) -> str:
        if call.name in session.tools:
            return await session.tools[call.name].call(arguments)
        schema, function = tools[call.name]
        found = await self.arguments(session, call.name, arguments, schema)
        if isinstance(found, Failure):
            return str(found)
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", function))
            value = adapter.validate_python(ArgsKwargs((), dict(found)))
            value = await value if hasattr(value, "__await__") else value
        except ValidationError as error:
            return self.told(error)
        except ValueError as error:
            return await self.shown(session, call, str(error), is_error=True)
        if isinstance(value, tuple):
            text, image = cast("tuple[str, bytes]", value)
            self.images.append(image)
            return str(await session.mirror.offload_part(text, call.name))
        return await self.shown(session, call, value)

    async def arguments(
        self, session: Session, tool: str, given: dict[str, object], schema: Mapping[str, Any]
    ) -> Mapping[str, object] | Failure:
        return await session.arguments(tool, given, schema)

    def told(self, error: ValidationError) -> str:
        return str(as_failure(misfit(error, "the argument")))

    async def shown(
        self, session: Session, call: ModelCall, value: object, *, is_error: bool = False
    ) -> str:
        shown = await session.mirror.offload(value, call.name, call.id, is_error=is_error)
        return str(shown) if isinstance(shown, str | Envelope) else to_json(shown).decode()

    def tool(self, given: Any) -> tuple[str, tuple[Mapping[str, Any], Callable[..., Any]]]:
        if isinstance(given, Injecting):
            take = given.take

            def inject(items: list[dict[str, int]]) -> str:
                """Take items."""
                return take(Context(1), items)

            given = inject
        told = definition(given)
        return told["name"], (told["parameters"], given)


class Writing(Loop):
    """What pointers stand for is written into the conversation."""

    async def arguments(self, session: Session, tool: str, given: Any, schema: Any) -> Any:
        found = await session.arguments(tool, given, schema)
        if not isinstance(found, Failure):
            given.update(found)
            self.told_text = json.dumps(given)
        return found

    async def shown(self, session: Any, call: Any, value: Any, *, is_error: bool = False) -> str:
        shown = await super().shown(session, call, value, is_error=is_error)
        return f"{shown} {getattr(self, 'told_text', '')}"


class Blind(Loop):
    """Pointers are handed to tools as they are."""

    async def arguments(self, session: Session, tool: str, given: Any, schema: Any) -> Any:
        return given


class Typeless(Loop):
    """The schema of a tool does not decide what a pointer stands for."""

    async def arguments(self, session: Session, tool: str, given: Any, schema: Any) -> Any:
        return await session.arguments(tool, given)


class Strict(Loop):
    """A pointer that stands for nothing ends the run."""

    async def arguments(self, session: Session, tool: str, given: Any, schema: Any) -> Any:
        return await session.mirror.resolve(given, schema)


class Quoting(Loop):
    """What does not fit is quoted."""

    def told(self, error: ValidationError) -> str:
        return str(error.errors())


class Shared(Loop):
    """All sessions have one scope."""

    def of(self, sessions: Sessions, session: str | None) -> Session:
        return sessions.of()


class Growing(Loop):
    """The system text differs from turn to turn."""

    def system(self, turn: int) -> str:
        return f"{INSTRUCTIONS}\n{SYSTEM_TEXT}\n{turn}"


class Narrow(Loop):
    """Schemas are shown as they are."""

    def schema(self, session: Session, schema: Mapping[str, Any]) -> object:
        return schema


class Nameless(Loop):
    """The artifact does not have the name of its call."""

    async def shown(self, session: Any, call: Any, value: Any, *, is_error: bool = False) -> str:
        shown = await session.mirror.offload(value, call.name, is_error=is_error)
        return str(shown) if isinstance(shown, str | Envelope) else to_json(shown).decode()


class Unflagged(Loop):
    """An error is a result like any other."""

    async def shown(self, session: Any, call: Any, value: Any, *, is_error: bool = False) -> str:
        return await super().shown(session, call, value)


class Textual(Loop):
    """A result is banked as the text it is shown as."""

    async def shown(self, session: Any, call: Any, value: Any, *, is_error: bool = False) -> str:
        text = value if isinstance(value, str) else str(value)
        return await super().shown(session, call, text, is_error=is_error)


BROKEN: dict[type[Loop], str] = {
    Writing: "test_pointer_of_an_envelope",
    Blind: "test_pointer_of_an_envelope",
    Typeless: "test_text_parameter",
    Strict: "test_unknown_pointer",
    Quoting: "test_value_that_does_not_fit",
    Shared: "test_sessions_cannot",
    Growing: "test_system_text",
    Narrow: "test_schema_of_a_structured",
    Nameless: "test_envelope_that_was_dropped",
    Unflagged: "test_large_error",
    Textual: "test_large_result",
}
"""Each with the beginning of a case that must find it."""


def test_suite_passes_an_adapter_that_does_all_of_it(pytester: pytest.Pytester) -> None:
    done = run_suite(pytester, Loop)

    assert done["failed"] == done["errors"] == done["skipped"] == 0
    assert done["passed"] > 35


@pytest.mark.parametrize("loop", BROKEN)
def test_suite_finds_what_is_wrong(loop: type[Loop], pytester: pytest.Pytester) -> None:
    done = run_suite(pytester, loop, only=BROKEN[loop])

    assert done["failed"] > 0


def test_case_that_cannot_apply_passes_while_it_fails(pytester: pytest.Pytester) -> None:
    case = "test_schema_of_a_structured_parameter_lets_a_pointer_in"
    done = run_suite(pytester, Narrow, f"    cannot = {{{case!r}: 'there is no hook'}}", case)

    assert (done["passed"], done["failed"]) == (1, 0)


def test_case_that_is_said_not_to_apply_and_passes_is_told(pytester: pytest.Pytester) -> None:
    case = "test_schema_of_a_structured_parameter_lets_a_pointer_in"
    done = run_suite(pytester, Loop, f"    cannot = {{{case!r}: 'there is no hook'}}", case)

    assert (done["passed"], done["failed"]) == (0, 1)


@pytest.mark.parametrize("case", ["test_nothing", "run", ""])
def test_what_cannot_apply_is_a_case(case: str) -> None:
    with pytest.raises(ValueError, match="which is no case"):
        type("Wrong", (Loop,), {"cannot": {case: "it has none"}})


def test_what_cannot_apply_has_a_reason() -> None:
    case = "test_injected_parameter_is_left_alone"
    with pytest.raises(ValueError, match="gives no reason"):
        type("Wrong", (Loop,), {"cannot": {case: " "}})


def test_scripted_model_that_is_asked_too_often_says_so() -> None:
    model = ScriptedModel(["done"])

    assert model.reply("a request", {}) == "done"
    with pytest.raises(AssertionError, match="at its end"):
        model.reply("another", {})


def run_suite(
    pytester: pytest.Pytester, loop: type[Loop], body: str = "    pass", only: str = ""
) -> dict[str, int]:
    """Return how the suite ends for a test class of an outsider, with no setting of ours."""
    pytester.makepyfile(
        f"""
import importlib.util
import pytest

spec = importlib.util.spec_from_file_location("loops", {str(Path(__file__))!r})
loops = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loops)

@pytest.fixture
def anyio_backend():
    return "asyncio"

class TestOutside(loops.{loop.__name__}):
{body}
"""
    )
    done = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-k", only)
    outcomes = done.parseoutcomes()
    return {name: outcomes.get(name, 0) for name in ("passed", "failed", "errors", "skipped")}
