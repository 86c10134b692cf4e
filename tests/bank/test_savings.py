"""What a journal adds up to."""

from coatcheck.bank._journal import Call
from coatcheck.bank.savings import lineage, savings, total

A, B, C = "art:a", "art:b", "art:c"

ROWS = Call(
    at_ns=1,
    verb="tool",
    tool="rows",
    run="r1",
    pointers_out=(A,),
    size_bytes=60_000,
    tokens=20_000,
    shown_tokens=300,
    schema_tokens=130,
)
READ = Call(
    at_ns=2,
    verb="read",
    tool="retrieve_context",
    run="r1",
    pointers_in=(A,),
    shown_tokens=500,
    schema_tokens=130,
)
DERIVED = Call(
    at_ns=3,
    verb="query",
    tool="retrieve_context",
    run="r1",
    pointers_in=(f"{A}#/items", C),
    pointers_out=(B,),
    shown_tokens=100,
    schema_tokens=130,
)
TOTAL = Call(
    at_ns=4,
    verb="tool",
    tool="total",
    run="r2",
    pointers_in=(B,),
    size_bytes=4,
    tokens=2,
    shown_tokens=2,
    schema_tokens=130,
    is_error=True,
)
ALL = (ROWS, READ, DERIVED, TOTAL)


def test_what_was_kept_out_is_the_results_less_all_that_pointers_cost() -> None:
    rows, retrieved, failed = savings(ALL)[0], savings(ALL)[2], savings(ALL)[1]

    assert rows.kept_out_tokens == 20_000 - 300 - 130
    assert (retrieved.tool, retrieved.calls) == ("retrieve_context", 2)
    assert retrieved.kept_out_tokens == -(500 + 100) - 2 * 130
    assert (failed.tool, failed.errors, failed.kept_out_tokens) == ("total", 1, -130)


def test_tools_and_runs_are_added_up_apart_and_the_total_over_all() -> None:
    again = Call(at_ns=9, verb="tool", tool="rows", run="r2", tokens=5)

    apart = savings([*ALL, again])
    whole = total([*ALL, again])

    assert [(one.tool, one.run) for one in apart if one.tool == "rows"] == [
        ("rows", "r1"),
        ("rows", "r2"),
    ]
    assert whole.kept_out_tokens == sum(one.kept_out_tokens for one in apart)
    assert (whole.calls, whole.banked, whole.size_bytes) == (5, 1, 60_004)
    assert (whole.result_tokens, whole.shown_tokens) == (20_007, 302)


def test_of_no_call_nothing_was_kept_out() -> None:
    assert savings([]) == []
    assert total([]).kept_out_tokens == 0


def test_lineage_tells_who_made_it_who_was_given_it_and_what_came_of_it() -> None:
    of_a = lineage(ALL, A)
    of_b = lineage(ALL, B)

    assert of_a.made_by == (ROWS,)
    assert of_a.read_by == (READ, DERIVED)
    assert of_a.given_to == ()
    assert of_a.derived_into == (B,)
    assert (of_b.made_by, of_b.given_to, of_b.derived_into) == ((DERIVED,), (TOTAL,), ())
