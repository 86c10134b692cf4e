"""What an adapter makes of the results of tools, as tests."""

import re

from ..bank import Bank
from ..records import Limits
from ..stores import MemoryStore
from ._adapter_driver import LIMITS, Outage
from ._adapter_pointers import UNKNOWN, PointerCases
from ._adapter_script import ModelCall, pointer_in
from ._adapter_tools import IMAGE, MARK, Tools, made_log, made_rows

_ROWS = ModelCall(name="rows", arguments={"n": 100}, id="c1")
_SAYS_ERROR = re.compile(r"isError\W+true", re.IGNORECASE)


class ResultCases(PointerCases):
    """The part of `AdapterSuite` that looks at results."""

    async def test_large_result_is_banked_whole_and_shown_as_an_envelope(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self.run(bank, [tools.rows], [[_ROWS], "done"], limits=LIMITS)

        own = await self.bank_for(bank)
        artifact = await own.find(pointer_in(seen.results["c1"]))
        assert artifact is not None
        assert await own.get(artifact.pointer) == made_rows(100)
        assert artifact.tool == "rows"
        assert str(artifact.size_bytes) in seen.results["c1"]
        assert artifact.read_back in seen.results["c1"].replace("\\", "")
        assert MARK not in seen.results["c1"]

    async def test_long_text_is_banked_as_the_text_it_is(self, bank: Bank, tools: Tools) -> None:
        log = ModelCall(name="log", arguments={"lines": 100}, id="c1")
        seen = await self.run(bank, [tools.log], [[log], "done"], limits=LIMITS)

        own = await self.bank_for(bank)
        assert await own.get(pointer_in(seen.results["c1"])) == made_log(100)
        assert MARK not in seen.history

    async def test_small_results_are_untouched_and_not_banked(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self.run(
            bank,
            [tools.note, tools.rows],
            [
                [ModelCall(name="note", arguments={"text": "né 🎟"}, id="c1")],
                [ModelCall(name="rows", arguments={"n": 2}, id="c2")],
                "done",
            ],
            limits=LIMITS,
        )

        assert "né 🎟" in seen.results["c1"]
        assert "70000001" in seen.results["c2"]
        assert "art:" not in seen.history
        assert await self.count(bank) == 0

    async def test_limits_of_the_bank_hold_where_the_adapter_has_none(self, tools: Tools) -> None:
        bank = Bank(MemoryStore(), limits=LIMITS)
        seen = await self.run(bank, [tools.rows], [[_ROWS], "done"])

        assert pointer_in(seen.results["c1"])
        assert MARK not in seen.history

    async def test_limits_of_single_tools_hold(self, bank: Bank, tools: Tools) -> None:
        limits = Limits(inline_bytes=1_000, per_tool={"note": 0}, never=frozenset({"rows"}))
        note = ModelCall(name="note", arguments={"text": "short"}, id="c2")
        seen = await self.run(
            bank, [tools.rows, tools.note], [[_ROWS], [note], "done"], limits=limits
        )

        assert MARK in seen.results["c1"]
        own = await self.bank_for(bank)
        assert await own.get(pointer_in(seen.results["c2"])) == "noted: short"

    async def test_small_error_is_untouched_and_not_banked(self, bank: Bank) -> None:
        fail = ModelCall(name="fail", arguments={}, id="c1")
        seen = await self.run(
            bank, [self.failing("no such customer")], [[fail], "done"], limits=LIMITS
        )

        assert "no such customer" in seen.results["c1"]
        assert "art:" not in seen.history
        assert await self.count(bank) == 0
        assert seen.output == "done"

    async def test_large_error_is_offloaded_and_still_says_that_it_is_one(self, bank: Bank) -> None:
        fail = ModelCall(name="fail", arguments={}, id="c1")
        seen = await self.run(bank, [self.failing(made_log(100))], [[fail], "done"], limits=LIMITS)

        assert _SAYS_ERROR.search(seen.results["c1"])
        assert MARK not in seen.history
        own = await self.bank_for(bank)
        assert made_log(100).rstrip() in str(await own.get(pointer_in(seen.results["c1"])))
        assert seen.output == "done"

    async def test_image_is_left_alone_and_the_text_beside_it_offloaded(self, bank: Bank) -> None:
        photo = ModelCall(name="photo", arguments={}, id="c1")
        seen = await self.run(
            bank, [self.photo(made_log(100), IMAGE)], [[photo], "done"], limits=LIMITS
        )

        assert IMAGE in seen.images
        assert MARK not in seen.history
        own = await self.bank_for(bank)
        assert await own.get(pointer_in(seen.requests[-1])) == made_log(100)
        assert await self.count(bank) == 1

    async def test_image_and_a_short_text_are_left_alone(self, bank: Bank) -> None:
        photo = ModelCall(name="photo", arguments={}, id="c1")
        seen = await self.run(
            bank, [self.photo("a red dot", IMAGE)], [[photo], "done"], limits=LIMITS
        )

        assert IMAGE in seen.images
        assert "a red dot" in seen.requests[-1]
        assert await self.count(bank) == 0

    async def test_own_tool_reads_a_pointer_and_its_reply_is_never_offloaded(
        self, bank: Bank, tools: Tools
    ) -> None:
        seen = await self.run(
            bank,
            [tools.rows],
            [
                [_ROWS],
                lambda results: [
                    ModelCall(
                        name="retrieve_context",
                        arguments={"artifactId": pointer_in(results["c1"])},
                        id="c2",
                    )
                ],
                "done",
            ],
            limits=LIMITS,
        )

        assert MARK in seen.results["c2"]
        assert "totalSize" in seen.results["c2"]
        assert await self.count(bank) == 1

    async def test_own_tool_that_finds_nothing_says_so_and_the_run_goes_on(
        self, bank: Bank, tools: Tools
    ) -> None:
        read = ModelCall(name="retrieve_context", arguments={"artifactId": UNKNOWN}, id="c1")
        seen = await self.run(bank, [tools.note], [[read], "done"])

        assert "unknown-pointer" in seen.results["c1"]
        assert seen.output == "done"

    async def test_store_that_is_out_costs_no_result_and_no_run(self, tools: Tools) -> None:
        store = Outage()
        bank = Bank(store)
        store.is_out = True
        total = ModelCall(name="total", arguments={"items": UNKNOWN}, id="c2")
        seen = await self.run(
            bank, [tools.rows, tools.total], [[_ROWS], [total], "done"], limits=LIMITS
        )

        assert MARK in seen.results["c1"]
        assert "store-unavailable" in seen.results["c2"]
        assert tools.given("total") == []
        assert seen.output == "done"
