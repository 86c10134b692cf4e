"""What every adapter does for a framework, as tests to inherit."""

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from ..adapters._sessions import SYSTEM_TEXT
from ..bank import Bank
from ._adapter_driver import INSTRUCTIONS, LIMITS, PROMPT
from ._adapter_results import ResultCases
from ._adapter_script import ModelCall, pointer_in
from ._adapter_tools import MARK, Row, Tools, made_rows

_FAILED = (Exception, pytest.fail.Exception)
_WIDENED = "da-f-]{32}"
"""Stands in a schema that also takes a pointer."""


class AdapterSuite(ResultCases):
    """Inherit from this in a class named ``Test…``, and drive the framework in `run`.

    The framework's agent loop, tools and sessions are the real ones; only the model is a fake,
    which asks a `ScriptedModel` for its replies. The tests run under anyio's pytest plugin, which
    comes with Coatcheck.

    A case that cannot apply is named in `cannot` with the reason. It is run all the same, and has
    to fail: a reason that no longer holds is told.
    """

    cannot: ClassVar[Mapping[str, str]] = {}
    """By the name of a case, why it cannot apply to this framework."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        for name, reason in cls.cannot.items():
            case = getattr(AdapterSuite, name, None)
            if not name.startswith("test_") or case is None:
                raise ValueError(f"{cls.__name__}.cannot names {name!r}, which is no case")
            if not reason.strip():
                raise ValueError(f"{cls.__name__}.cannot gives no reason for {name!r}")
            setattr(cls, name, _failing(case, reason))

    async def test_sessions_cannot_use_or_read_each_others_pointers(
        self, bank: Bank, tools: Tools
    ) -> None:
        rows = ModelCall(name="rows", arguments={"n": 100}, id="c1")
        one = await self.run(bank, [tools.rows], [[rows], "done"], session="one", limits=LIMITS)
        pointer = pointer_in(one.results["c1"])
        two = await self.run(
            bank,
            [tools.total],
            [
                [
                    ModelCall(name="total", arguments={"items": pointer}, id="c2"),
                    ModelCall(name="retrieve_context", arguments={"artifactId": pointer}, id="c3"),
                    ModelCall(
                        name="retrieve_context", arguments={"artifactId": "rows_c1"}, id="c4"
                    ),
                ],
                "done",
            ],
            session="two",
            limits=LIMITS,
        )

        assert all("unknown-pointer" in two.results[call] for call in ("c2", "c3", "c4"))
        assert tools.given("total") == []
        assert MARK not in two.history
        assert (await self.count(bank, "one"), await self.count(bank, "two")) == (1, 0)

    async def test_second_run_of_a_session_uses_a_pointer_of_the_first(
        self, bank: Bank, tools: Tools
    ) -> None:
        rows = ModelCall(name="rows", arguments={"n": 100}, id="c1")
        one = await self.run(
            bank, [tools.rows, tools.total], [[rows], "done"], session="one", limits=LIMITS
        )
        total = ModelCall(name="total", arguments={"items": pointer_in(one.results["c1"])}, id="c2")
        two = await self.run(
            bank, [tools.rows, tools.total], [[total], "done"], session="one", limits=LIMITS
        )

        assert tools.given("total") == [made_rows(100)]
        assert "4950" in two.results["c2"]

    async def test_second_run_without_a_session_uses_a_pointer_of_the_first(
        self, bank: Bank, tools: Tools
    ) -> None:
        rows = ModelCall(name="rows", arguments={"n": 100}, id="c1")
        one = await self.run(bank, [tools.rows, tools.total], [[rows], "done"], limits=LIMITS)
        total = ModelCall(name="total", arguments={"items": pointer_in(one.results["c1"])}, id="c2")
        await self.run(bank, [tools.rows, tools.total], [[total], "done"], limits=LIMITS)

        assert tools.given("total") == [made_rows(100)]

    async def test_envelope_that_was_dropped_is_found_by_the_name_of_its_call(
        self, bank: Bank, tools: Tools
    ) -> None:
        rows = ModelCall(name="rows", arguments={"n": 100}, id="c1")
        await self.run(bank, [tools.rows], [[rows], "done"], session="one", limits=LIMITS)
        read = [_read("rows_c1", "c2")]
        seen = await self.run(bank, [tools.note], [read, "done"], session="one", limits=LIMITS)

        assert MARK in seen.results["c2"]

    async def test_host_hands_over_a_pointer_by_the_bank_of_a_session(
        self, bank: Bank, tools: Tools
    ) -> None:
        own = await self.bank_for(bank, "one")
        pointer = (await own.put(made_rows(100), name="all orders")).pointer
        total = ModelCall(name="total", arguments={"items": pointer}, id="c1")
        await self.run(bank, [tools.total], [[total], "done"], session="one")

        assert tools.given("total") == [made_rows(100)]
        assert own.scope != (await self.bank_for(bank, "two")).scope

    async def test_system_text_and_schemas_are_there_once_and_the_same_in_each_request(
        self, bank: Bank, tools: Tools
    ) -> None:
        rows = ModelCall(name="rows", arguments={"n": 100}, id="c1")
        runs = [
            await self.run(
                bank, [tools.rows, tools.total], [[rows], "done"], session="one", limits=LIMITS
            )
            for _ in range(2)
        ]

        heads = {request.partition(PROMPT)[0] for seen in runs for request in seen.requests}
        assert len(heads) == 1
        (head,) = heads
        assert head.count(SYSTEM_TEXT) == 1
        assert INSTRUCTIONS in head
        assert "retrieve_context" in head

    async def test_schema_of_a_structured_parameter_lets_a_pointer_in(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self.run(bank, [tools.total, tools.length], ["done"])
        without = await self.run(bank, [tools.length], ["done"])

        assert seen.requests[0].count(_WIDENED) == 1
        assert _WIDENED not in without.requests[0]

    async def test_tool_with_the_name_of_ours_is_refused(self, bank: Bank) -> None:
        def retrieve_context(query: str) -> str:
            """Search.

            Args:
                query: What for.
            """
            return query

        named = "(?s)retrieve_context.*name|name.*retrieve_context"
        with pytest.raises(Exception, match=named):
            await self.run(bank, [retrieve_context], ["done"])

    async def test_tool_with_a_name_of_ours_that_is_not_added_is_like_any_other(
        self, bank: Bank
    ) -> None:
        given: list[object] = []

        def memory_read(n: int) -> list[Row]:
            """Read rows.

            Args:
                n: How many.
            """
            return made_rows(n)

        def memory_write(items: list[Row]) -> str:
            """Write rows.

            Args:
                items: The rows.
            """
            given.append(items)
            return "written"

        seen = await self.run(
            bank,
            [memory_read, memory_write],
            [
                [ModelCall(name="memory_read", arguments={"n": 100}, id="c1")],
                lambda results: [
                    ModelCall(
                        name="memory_write", arguments={"items": pointer_in(results["c1"])}, id="c2"
                    )
                ],
                "done",
            ],
            limits=LIMITS,
        )

        assert given == [made_rows(100)]
        assert MARK not in seen.history


def _read(artifact: str, call: str) -> ModelCall:
    return ModelCall(name="retrieve_context", arguments={"artifactId": artifact}, id=call)


def _failing(case: Callable[..., Any], reason: str) -> Callable[..., Any]:
    """Return a test that passes where `case` does not."""

    @functools.wraps(case)
    async def cannot(*args: object, **kwargs: object) -> None:
        try:
            await case(*args, **kwargs)
        except _FAILED:
            return
        pytest.fail(f"this case passes, though {reason!r} is given as a reason that it cannot")

    return cannot
