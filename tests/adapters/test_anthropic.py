"""The adapter for Anthropic's tool runner: the real client and runner, over a scripted API."""

import copy
import json
from base64 import b64encode
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction, signature
from typing import Any, ClassVar, cast

import anyio
import pytest
from anthropic import AsyncAnthropic
from anthropic.lib.tools import (
    BetaAsyncFunctionTool,
    BetaBuiltinFunctionTool,
    BetaFunctionTool,
    ToolError,
    beta_async_tool,
    beta_tool,
)

from coatcheck import Bank, Limits, mirror
from coatcheck.adapters._sessions import SYSTEM_TEXT
from coatcheck.adapters.anthropic import CoatcheckTools
from coatcheck.bank import portal
from coatcheck.stores import MemoryStore
from coatcheck.testing import (
    INSTRUCTIONS,
    AdapterSuite,
    How,
    ModelCall,
    Seen,
    Turn,
)
from coatcheck.testing._adapter_pointers import UNKNOWN
from coatcheck.testing._adapter_script import pointer_in
from coatcheck.testing._adapter_tools import Tools, made_log, made_rows

from .anthropic_api import ASKED, Api


def as_tool(fn: Any, *, is_async: bool) -> Any:
    """Return a function as a tool: of what it returns it makes a text, as the SDK asks for."""

    def said(value: object) -> Any:
        is_content = isinstance(value, str) or _is_blocks(value)
        return value if is_content else json.dumps(value, ensure_ascii=False)

    @wraps(fn)
    async def later(**arguments: Any) -> Any:
        value = fn(**arguments)
        return said(await value if iscoroutinefunction(fn) else value)

    @wraps(fn)
    def now(**arguments: Any) -> Any:
        return said(fn(**arguments))

    return cast("Any", beta_async_tool(later) if is_async else beta_tool(now))


def _is_blocks(value: object) -> bool:
    parts = cast("list[object]", value) if isinstance(value, list) else [None]
    return all(isinstance(each, dict) and "type" in each for each in parts)


class TestAnthropic(AdapterSuite):
    cannot: ClassVar[Mapping[str, str]] = {
        "test_large_result_is_banked_whole_and_shown_as_an_envelope": (
            "the runner tells a tool no id of its call, so artifacts have no names"
        ),
        "test_envelope_that_was_dropped_is_found_by_the_name_of_its_call": (
            "the runner tells a tool no id of its call, so artifacts have no names"
        ),
        "test_injected_parameter_is_left_alone": "the runner injects nothing",
    }

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
        api, coat = Api(script), CoatcheckTools(bank, limits=limits)
        is_async = how != "sync"
        given = [as_tool(tool, is_async=is_async) for tool in tools]
        asked = {
            **copy.deepcopy(ASKED),
            "tools": coat.tools(given, session, is_async=is_async),
            "system": coat.system(INSTRUCTIONS),
        }
        if how == "sync":
            final = await anyio.to_thread.run_sync(self._blocking, api, asked)
        else:
            async with api.async_client() as client:
                final = await self._async(client, asked, streams=how == "stream")
        return Seen(
            requests=api.script.requests,
            results=api.script.results,
            history=json.dumps(api.requests[-1]["messages"], ensure_ascii=False),
            output=final.content[0].text,
            images=api.images,
        )

    def _blocking(self, api: Api, asked: dict[str, Any]) -> Any:
        with api.client() as client:
            return cast("Any", client.beta.messages).tool_runner(**asked).until_done()

    async def _async(self, client: AsyncAnthropic, asked: dict[str, Any], *, streams: bool) -> Any:
        messages = cast("Any", client.beta.messages)
        if not streams:
            return await messages.tool_runner(**asked).until_done()
        final: Any = None
        async for stream in messages.tool_runner(**asked, stream=True):
            async for _ in stream:
                pass
            final = await stream.get_final_message()
        return final

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return CoatcheckTools(bank).bank_for(session)

    def photo(self, text: str, image: bytes) -> object:
        def photo() -> list[dict[str, Any]]:
            """Return a photo."""
            data = b64encode(image).decode()
            source = {"type": "base64", "media_type": "image/png", "data": data}
            return [{"type": "text", "text": text}, {"type": "image", "source": source}]

        return photo


@pytest.fixture
def bank() -> Bank:
    return Bank(MemoryStore(), limits=Limits(inline_bytes=1_000))


def ran(api: Api, coat: CoatcheckTools, tools: Sequence[Any], **asked: Any) -> str:
    """Return the final answer of a run with the blocking client."""
    with api.client() as client:
        told = {"system": coat.system(INSTRUCTIONS), **ASKED, **asked}
        runner = cast("Any", client.beta.messages).tool_runner(tools=coat.tools(tools), **told)
        (block,) = runner.until_done().content
    return str(block.text)


def call(name: str, arguments: Mapping[str, object] | None = None, call_id: str = "c1") -> Turn:
    """Return a turn with one call."""
    return [ModelCall(name=name, arguments=arguments or {}, id=call_id)]


def test_large_text_is_banked_under_a_pointer_that_a_replay_finds_again(bank: Bank) -> None:
    api, tools = Api([call("rows", {"n": 100}), call("rows", {"n": 100}, "c2"), "done"]), Tools()

    ran(api, CoatcheckTools(bank), [as_tool(tools.rows, is_async=False)])

    first, second = api.script.results["c1"], api.script.results["c2"]
    assert first == second
    assert json.loads(portal().run(bank.get(pointer_in(first), str))) == made_rows(100)


def test_failures_are_results_that_say_they_are_errors(bank: Bank) -> None:
    def small() -> str:
        """Fail."""
        raise ToolError([{"type": "text", "text": "no such customer"}])

    def large() -> str:
        """Fail."""
        raise ToolError(made_log(100))

    api = Api(
        [
            call("total", {"items": UNKNOWN}),
            call("small", call_id="c2"),
            call("large", call_id="c3"),
            call("retrieve_context", {"artifactId": UNKNOWN}, "c4"),
            "done",
        ]
    )
    tools = [as_tool(Tools().total, is_async=False), beta_tool(small), beta_tool(large)]

    ran(api, CoatcheckTools(bank), tools)

    assert all(api.results[call_id]["is_error"] for call_id in ("c1", "c2", "c3", "c4"))
    assert api.script.results["c2"] == "no such customer"
    assert '"isError":true' in api.script.results["c3"]
    assert "line 70000099" in api.script.results["c3"]
    assert portal().run(bank.get(pointer_in(api.script.results["c3"]))) == made_log(100)


def test_what_does_not_fit_is_told_and_logged_without_what_the_pointer_stands_for(
    bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    pointer = portal().run(bank.put(["hunter2"])).pointer
    api = Api(
        [
            call("total", {"items": pointer}),
            call("total", {"items": pointer, "scale": "much"}, "c2"),
            call("total", {"items": [pointer]}, "c3"),
            call("total", {"items": pointer, "rest": pointer}, "c4"),
            "done",
        ]
    )

    ran(api, CoatcheckTools(bank), [as_tool(Tools().total, is_async=False)])

    assert all(api.results[call_id]["is_error"] for call_id in ("c1", "c2", "c3", "c4"))
    assert all("does not fit" in told for told in api.script.results.values())
    assert "hunter2" not in str(api.script.results)
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("value", [[1, 2], {"a": [1]}, 7, [{"no": "type"}]])
def test_plain_value_is_a_failure_that_says_what_to_return(bank: Bank, value: object) -> None:
    def give() -> Any:
        """Give."""
        return value

    api = Api([call("give", {}), "done"])

    ran(api, CoatcheckTools(bank), [beta_tool(give)])

    assert api.results["c1"]["is_error"]
    assert "has to return text" in api.script.results["c1"]


def test_value_of_a_function_mirrored_with_the_bank_of_a_session_is_banked(bank: Bank) -> None:
    coat = CoatcheckTools(bank)

    def give() -> Any:
        """Give."""
        return made_rows(3)

    api = Api([call("give", {}), "done"])
    ran(api, coat, [beta_tool(mirror(give, coat.bank_for(), inline_bytes=0))])

    pointer = pointer_in(api.script.results["c1"])
    assert portal().run(coat.bank_for().get(pointer)) == made_rows(3)


async def test_large_error_that_was_raised_is_kept_whole(bank: Bank) -> None:
    async def fail() -> str:
        """Fail."""
        raise KeyError(made_log(100))

    api, coat = Api([call("fail"), "done"]), CoatcheckTools(bank)
    async with api.async_client() as client:
        await (
            cast("Any", client.beta.messages)
            .tool_runner(tools=coat.tools([beta_async_tool(fail)]), system=coat.system(), **ASKED)
            .until_done()
        )

    assert api.results["c1"]["is_error"]
    kept = await bank.get(pointer_in(api.script.results["c1"]))
    assert kept == f"KeyError: {made_log(100)!r}"


def test_strict_tool_is_shown_a_pointer_without_a_pattern(bank: Bank) -> None:
    def add(numbers: list[int]) -> str:
        """Add numbers."""
        return str(sum(numbers))

    pointer = portal().run(bank.put([1, 2, 39])).pointer
    api = Api([call("add", {"numbers": pointer}), "done"])
    ran(api, CoatcheckTools(bank), [beta_tool(strict=True)(add)])

    (shown, _) = api.requests[0]["tools"]
    numbers = shown["input_schema"]["properties"]["numbers"]
    assert shown["strict"]
    assert numbers["anyOf"][1] == {"type": "string", "description": "a pointer"}
    assert "pattern" not in json.dumps(shown)
    assert api.script.results["c1"] == "42"


def test_tool_that_anthropic_defines_gets_texts_and_its_results_are_offloaded(bank: Bank) -> None:
    class Shell(BetaBuiltinFunctionTool):
        def to_dict(self) -> Any:
            return {"type": "bash_20250124", "name": "bash"}

        def call(self, input: object) -> str:  # noqa: A002 - as the SDK has it
            taken.append(input)
            return made_log(100)

    taken: list[object] = []
    pointer = portal().run(bank.put({"a": 1})).pointer
    api = Api([call("bash", {"command": pointer}), "done"])

    ran(api, CoatcheckTools(bank), [Shell()])

    assert api.requests[0]["tools"][0] == {"type": "bash_20250124", "name": "bash"}
    assert taken == [{"command": '{"a":1}'}]
    assert portal().run(bank.get(pointer_in(api.script.results["c1"]))) == made_log(100)


def test_definitions_that_the_api_runs_stay_as_they_are(bank: Bank) -> None:
    search: Any = {"type": "web_search_20250305", "name": "web_search"}

    tools = CoatcheckTools(bank).tools([search])

    assert tools[0] is search


def test_tool_that_opens_something_is_closed_on_either(bank: Bank) -> None:
    @contextmanager
    def opened() -> Generator[Callable[..., str]]:
        def read() -> str:
            """Read."""
            return "text"

        yield read

    tool = cast("Any", beta_tool(cast("Any", opened)))
    mirrored, _ = CoatcheckTools(bank).tools([tool])

    assert isinstance(mirrored, BetaFunctionTool)
    assert vars(mirrored)["_context_manager"] is vars(tool)["_context_manager"] is not None
    assert tool.to_dict()["name"] == mirrored.name


def test_flavour_of_our_tool_is_that_of_the_others(bank: Bank) -> None:
    coat = CoatcheckTools(bank)

    async def later() -> str:
        return ""

    assert isinstance(coat.tools([])[-1], BetaFunctionTool)
    assert isinstance(coat.tools([], is_async=True)[-1], BetaAsyncFunctionTool)
    assert isinstance(coat.tools([beta_async_tool(later)])[-1], BetaAsyncFunctionTool)


def test_system_blocks_keep_what_is_cached_in_front(bank: Bank) -> None:
    coat = CoatcheckTools(bank)
    blocks: list[Any] = [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    ]

    assert coat.system(blocks) == [*blocks, {"type": "text", "text": SYSTEM_TEXT}]
    assert len(blocks) == 1
    assert coat.system("Be brief.") == f"Be brief.\n\n{SYSTEM_TEXT}"
    assert coat.system() == coat.system("") == SYSTEM_TEXT


def test_tools_run_while_the_reply_is_read_serve_pointers_too(bank: Bank) -> None:
    api, tools = Api([call("rows", {"n": 100}), "done"]), Tools()
    coat = CoatcheckTools(bank)
    with api.client() as client:
        runner = client.beta.messages.tool_runner(
            tools=coat.tools([as_tool(tools.rows, is_async=False)]),
            system=coat.system(),
            stream=True,
            run_tools_eagerly=True,
            **ASKED,
        )
        for stream in runner:
            for _ in stream:
                pass

    assert tools.given("rows") == [100]
    assert pointer_in(api.script.results["c1"])


def test_conversation_that_the_host_keeps_is_served_as_one_that_the_api_keeps(bank: Bank) -> None:
    api, tools = Api([call("rows", {"n": 100}), "done"]), Tools()
    with api.client() as client:
        known = signature(client.beta.messages.tool_runner).parameters
    # Before there was a choice, the host always kept it.
    asked = {"thread": False} if "thread" in known else {}

    ran(api, CoatcheckTools(bank), [as_tool(tools.rows, is_async=False)], **asked)

    assert not api.requests[-1].get("thread")
    assert pointer_in(api.script.results["c1"])
