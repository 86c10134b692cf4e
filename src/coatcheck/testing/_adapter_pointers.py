"""What an adapter does with the pointers among a model's arguments, as tests."""

from ..bank import Bank
from ._adapter_driver import LIMITS, AdapterDriver
from ._adapter_script import How, ModelCall, Seen, Turn, pointer_in
from ._adapter_tools import MARK, Order, Row, Tools, made_log, made_rows

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
"""A pointer that was never given out."""

_TOTAL = "9900"
"""Of a hundred rows, twice."""


class PointerCases(AdapterDriver):
    """The part of `AdapterSuite` that looks at arguments."""

    async def test_pointer_of_an_envelope_reaches_another_tool_as_its_value(
        self, bank: Bank, tools: Tools
    ) -> None:
        await self._totals(bank, tools, "async")

    async def test_sync_run_offloads_and_resolves(self, bank: Bank, tools: Tools) -> None:
        await self._totals(bank, tools, "sync")

    async def test_streamed_run_offloads_and_resolves(self, bank: Bank, tools: Tools) -> None:
        await self._totals(bank, tools, "stream")

    async def test_async_tools_are_offloaded_and_take_pointers(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self.run(
            bank,
            [tools.rows_later, tools.total_later],
            [
                [ModelCall(name="rows_later", arguments={"n": 100}, id="c1")],
                lambda results: [
                    ModelCall(
                        name="total_later", arguments={"items": pointer_in(results["c1"])}, id="c2"
                    )
                ],
                "done",
            ],
            limits=LIMITS,
        )

        assert tools.given("total_later") == [made_rows(100)]
        assert "4950" in seen.results["c2"]
        assert MARK not in seen.history

    async def test_history_keeps_pointers_and_never_what_they_stand_for(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self._totals(bank, tools, "async")

        assert pointer_in(seen.results["c1"]) in seen.history.replace(seen.results["c1"], "")
        assert MARK not in seen.history
        assert not any(MARK in request for request in seen.requests)

    async def test_nested_pointers_are_resolved_each_in_its_place(
        self, bank: Bank, tools: Tools
    ) -> None:
        row: Row = {"id": 1, "price": 2}
        pointer = await self._put(bank, made_rows(100))
        seen = await self.run(
            bank,
            [tools.merge],
            [[_call("merge", parts=[pointer, [row], f"{pointer}#row=1-2"])], "done"],
            limits=LIMITS,
        )

        assert tools.given("merge") == [[made_rows(100), [row], made_rows(2)]]
        assert "103" in seen.results["merge"]

    async def test_selector_picks_a_part_of_what_was_banked(self, bank: Bank, tools: Tools) -> None:
        pointer = await self._put(bank, made_rows(100))
        seen = await self.run(
            bank,
            [tools.add],
            [[_call("add", numbers=f"{pointer}#$[*].price")], "done"],
            limits=LIMITS,
        )

        assert tools.given("add") == [list(range(100))]
        assert "4950" in seen.results["add"]

    async def test_text_parameter_gets_a_structure_as_its_text(
        self, bank: Bank, tools: Tools
    ) -> None:
        pointer = await self._put(bank, [1, 2, 3])
        seen = await self.run(bank, [tools.length], [[_call("length", text=pointer)], "done"])

        assert tools.given("length") == ["[1,2,3]"]
        assert "7" in seen.results["length"]

    async def test_structured_parameter_gets_a_text_parsed(self, bank: Bank, tools: Tools) -> None:
        pointer = await self._put(bank, '[{"id": 1, "price": 2}]')
        seen = await self.run(bank, [tools.total], [[_call("total", items=pointer)], "done"])

        assert tools.given("total") == [[{"id": 1, "price": 2}]]
        assert "2" in seen.results["total"]

    async def test_long_text_goes_from_tool_to_tool_unchanged(
        self, bank: Bank, tools: Tools
    ) -> None:
        await self.run(
            bank,
            [tools.log, tools.length],
            [
                [ModelCall(name="log", arguments={"lines": 100}, id="c1")],
                lambda results: [_call("length", text=pointer_in(results["c1"]))],
                "done",
            ],
            limits=LIMITS,
        )

        assert tools.given("length") == [made_log(100)]

    async def test_parameter_that_is_a_pydantic_model_gets_one(
        self, bank: Bank, tools: Tools
    ) -> None:
        whole = await self._put(bank, {"number": 7, "lines": made_rows(100)})
        order = {"number": 8, "lines": await self._put(bank, made_rows(50))}
        seen = await self.run(
            bank,
            [tools.price],
            [
                [ModelCall(name="price", arguments={"order": whole}, id="c1")],
                [ModelCall(name="price", arguments={"order": order}, id="c2")],
                "done",
            ],
        )

        assert tools.given("price") == [
            Order(number=7, lines=made_rows(100)),
            Order(number=8, lines=made_rows(50)),
        ]
        assert "4950" in seen.results["c1"]
        assert "1225" in seen.results["c2"]

    async def test_verbatim_parameter_gets_the_pointer_itself(
        self, bank: Bank, tools: Tools
    ) -> None:
        pointer = await self._put(bank, made_rows(100))
        row: Row = {"id": 1, "price": 2}
        await self.run(
            bank,
            [tools.keep],
            [
                [ModelCall(name="keep", arguments={"note": pointer, "items": pointer}, id="c1")],
                [ModelCall(name="keep", arguments={"note": UNKNOWN, "items": [row]}, id="c2")],
                "done",
            ],
        )

        assert tools.given("keep") == [(pointer, made_rows(100)), (UNKNOWN, [row])]

    async def test_arguments_without_pointers_reach_the_tool_as_ever(
        self, bank: Bank, tools: Tools
    ) -> None:
        row: Row = {"id": 1, "price": 2}
        await self.run(
            bank,
            [tools.price, tools.length],
            [
                [_call("price", order={"number": 7, "lines": [row]})],
                # It begins like a pointer, and is none.
                [_call("length", text="art:deco posters")],
                "done",
            ],
        )

        assert tools.given("price") == [Order(number=7, lines=[row])]
        assert tools.given("length") == ["art:deco posters"]

    async def test_injected_parameter_is_left_alone(self, bank: Bank) -> None:
        pointer = await self._put(bank, made_rows(100))
        taken: list[tuple[object, list[Row]]] = []

        def take(injected: object, items: list[Row]) -> str:
            taken.append((injected, items))
            return "taken"

        seen = await self.run(
            bank, [self.injecting(take)], [[_call("inject", items=pointer)], "done"]
        )

        assert "taken" in seen.results["inject"]
        ((injected, items),) = taken
        assert items == made_rows(100)
        assert injected is not None
        assert not isinstance(injected, str | list)

    async def test_unknown_pointer_is_an_error_that_the_model_reads(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self.run(bank, [tools.total], [[_call("total", items=UNKNOWN)], "done"])

        assert "unknown-pointer" in seen.results["total"]
        assert tools.calls == []
        assert seen.output == "done"

    async def test_unknown_pointers_one_after_another_do_not_end_the_run(
        self, bank: Bank, tools: Tools
    ) -> None:
        pointer = await self._put(bank, made_rows(100))

        def wrong(attempt: int) -> list[ModelCall]:
            nested = {"parts": [pointer, UNKNOWN]}
            return [ModelCall(name="merge", arguments=nested, id=f"c{attempt}")]

        seen = await self.run(
            bank, [tools.merge], [*map(wrong, range(4)), [_call("merge", parts=[pointer])], "done"]
        )

        assert all("unknown-pointer" in seen.results[f"c{attempt}"] for attempt in range(4))
        assert tools.given("merge") == [[made_rows(100)]]
        assert seen.output == "done"

    async def test_value_that_does_not_fit_is_an_error_that_does_not_quote_it(
        self, bank: Bank, tools: Tools
    ) -> None:
        pointer = await self._put(bank, made_rows(100))
        seen = await self.run(
            bank,
            [tools.add],
            [
                [ModelCall(name="add", arguments={"numbers": pointer}, id="c1")],
                [ModelCall(name="add", arguments={"numbers": f"{pointer}#$[*].id"}, id="c2")],
                "done",
            ],
        )

        assert seen.results["c1"]
        assert MARK not in seen.history.replace(seen.results["c2"], "")
        assert not any(MARK in request for request in seen.requests)
        assert tools.given("add") == [[row["id"] for row in made_rows(100)]]
        assert seen.output == "done"

    async def test_pointer_with_what_is_no_selector_is_an_error_that_the_model_reads(
        self, bank: Bank, tools: Tools
    ) -> None:
        pointer = await self._put(bank, made_rows(100))
        seen = await self.run(
            bank, [tools.total], [[_call("total", items=f"{pointer}#the first")], "done"]
        )

        assert "selector" in seen.results["total"]
        assert tools.calls == []
        assert seen.output == "done"

    async def test_parallel_calls_are_each_served_on_their_own(
        self, bank: Bank, tools: Tools
    ) -> None:
        def totals(results: dict[str, str]) -> list[ModelCall]:
            return [
                ModelCall(name="total", arguments={"items": pointer_in(results["c1"])}, id="c4"),
                ModelCall(name="total", arguments={"items": pointer_in(results["c2"])}, id="c5"),
                ModelCall(name="total", arguments={"items": UNKNOWN}, id="c6"),
            ]

        seen = await self.run(
            bank,
            [tools.rows, tools.total, tools.note],
            [
                [
                    ModelCall(name="rows", arguments={"n": 100}, id="c1"),
                    ModelCall(name="rows", arguments={"n": 60}, id="c2"),
                    ModelCall(name="note", arguments={"text": "both asked for"}, id="c3"),
                ],
                lambda results: totals(dict(results)),
                "done",
            ],
            limits=LIMITS,
        )

        assert "both asked for" in seen.results["c3"]
        assert "4950" in seen.results["c4"]
        assert "1770" in seen.results["c5"]
        assert "unknown-pointer" in seen.results["c6"]
        assert sorted(tools.given("total"), key=str) == [made_rows(100), made_rows(60)]

    async def _totals(self, bank: Bank, tools: Tools, how: How) -> Seen:
        """Run what is usual: a large result, and its pointer as an argument of another tool."""
        script: list[Turn] = [
            [ModelCall(name="rows", arguments={"n": 100}, id="c1")],
            lambda results: [
                ModelCall(
                    name="total",
                    arguments={"items": pointer_in(results["c1"]), "scale": 2},
                    id="c2",
                )
            ],
            "done",
        ]
        seen = await self.run(bank, [tools.rows, tools.total], script, limits=LIMITS, how=how)

        assert tools.given("total") == [made_rows(100)]
        assert _TOTAL in seen.results["c2"]
        assert MARK not in seen.history
        assert seen.output == "done"
        assert len(seen.requests) == 3
        return seen

    async def _put(self, bank: Bank, value: object) -> str:
        """Return the pointer of what a host put where the session finds it."""
        return (await (await self.bank_for(bank)).put(value)).pointer


def _call(tool: str, **arguments: object) -> ModelCall:
    """Return the one call of a tool in a script."""
    return ModelCall(name=tool, arguments=arguments, id=tool)
