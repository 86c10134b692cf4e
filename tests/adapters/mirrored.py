"""What is the same of all frameworks without an adapter: `mirror` around each function."""

from collections.abc import Mapping
from typing import ClassVar

from coatcheck import Bank
from coatcheck.testing import AdapterSuite, ModelCall, pointer_in
from coatcheck.testing._adapter_driver import LIMITS
from coatcheck.testing._adapter_pointers import UNKNOWN
from coatcheck.testing._adapter_tools import Tools

NO_CODE = "the model reads the message of the error that mirror raises, without a code"


class MirroredSuite(AdapterSuite):
    """Inherit from this in a class named ``Test…``, and mirror the tools with `bank_for`."""

    cannot: ClassVar[Mapping[str, str]] = {
        "test_unknown_pointer_is_an_error_that_the_model_reads": NO_CODE,
        "test_unknown_pointers_one_after_another_do_not_end_the_run": NO_CODE,
        "test_parallel_calls_are_each_served_on_their_own": NO_CODE,
        "test_store_that_is_out_costs_no_result_and_no_run": NO_CODE,
        "test_sessions_cannot_use_or_read_each_others_pointers": NO_CODE,
        "test_envelope_that_was_dropped_is_found_by_the_name_of_its_call": (
            "a mirrored function does not learn the id of its call"
        ),
        "test_large_error_is_offloaded_and_still_says_that_it_is_one": (
            "mirror offloads what a function returns, not what it raises"
        ),
        "test_system_text_and_schemas_are_there_once_and_the_same_in_each_request": (
            "what stands in the system text is for the host to say"
        ),
    }

    tells_calls_apart: ClassVar[bool] = True
    """Whether a failed call leaves the others of its turn their results."""

    async def bank_for(self, bank: Bank, session: str | None = None) -> Bank:
        return bank if session is None else bank.scoped(f"{bank.scope}/{session}")

    async def test_model_reads_of_a_pointer_that_stands_for_nothing_and_goes_on(
        self, bank: Bank, tools: Tools
    ) -> None:
        total = ModelCall(name="total", arguments={"items": UNKNOWN}, id="c1")
        note = ModelCall(name="note", arguments={"text": "x"}, id="c2")
        turns = [[total, note]] if self.tells_calls_apart else [[total], [note]]
        seen = await self.run(bank, [tools.total, tools.note], [*turns, "done"])

        assert f"No artifact behind '{UNKNOWN}'" in seen.results["c1"]
        assert "noted: x" in seen.results["c2"]
        assert tools.given("total") == []
        assert seen.output == "done"

    async def test_sessions_have_scopes_of_their_own(self, bank: Bank, tools: Tools) -> None:
        rows = ModelCall(name="rows", arguments={"n": 100}, id="c1")
        one = await self.run(bank, [tools.rows], [[rows], "done"], session="one", limits=LIMITS)
        total = ModelCall(name="total", arguments={"items": pointer_in(one.results["c1"])}, id="c2")
        two = await self.run(bank, [tools.total], [[total], "done"], session="two")

        assert "No artifact behind" in two.results["c2"]
        assert tools.given("total") == []
