"""Pointers with selectors on the command line: show, read, search."""

import json
from typing import Any

import pytest

from .conftest import Run

UNKNOWN = "art:00000000-0000-4000-8000-000000000005"
ORDERS: dict[str, Any] = {
    "total": 3,
    "items": [{"id": number, "city": city} for number, city in enumerate(("Łódź", "Lyon", "大阪"))],
}


@pytest.fixture
def orders(coatcheck: Run) -> str:
    payload = json.dumps(ORDERS, ensure_ascii=False, separators=(",", ":")).encode()
    return coatcheck("put", "-", "--name", "orders", given=payload).text.strip()


@pytest.fixture
def log(coatcheck: Run) -> str:
    lines = "".join(f"line {number}\n" for number in range(1, 1_001))
    return coatcheck("put", "-", given=lines.encode()).text.strip()


def test_read_takes_lines_as_people_write_them(coatcheck: Run, log: str) -> None:
    done = coatcheck("read", f"{log}#L10-L12")

    assert (done.code, done.out) == (0, b"line 10\nline 11\nline 12\n")
    assert done.err == "characters 0-24 of 24\n"
    assert coatcheck("read", f"{log}#L10-L12", "--lines", "2").out == b"line 11\n"
    assert coatcheck("read", f"{log}#L10-L12", "--lines", "2").err == (
        "lines 2-2 of 3; next: --unit lines --offset 2\n"
    )
    assert coatcheck("read", f"{log}#L1000", "--all").out == b"line 1000\n"


def test_read_gives_what_a_path_picks(coatcheck: Run, orders: str) -> None:
    assert coatcheck("read", f"{orders}#/items/0/city").text == "Łódź"
    assert coatcheck("read", f"{orders}#$.items[*].id").text == "[0,1,2]"
    assert coatcheck("read", f"{orders}#/items", "--all").json == ORDERS["items"]
    rows = coatcheck("read", f"{orders}#/items", "--unit", "rows", "--offset", "1", "--limit", "1")
    assert rows.json == [ORDERS["items"][1]]
    assert rows.err == "rows 1-2 of 3; next: --unit rows --offset 2\n"
    last = coatcheck("read", f"{orders}#/items", "--unit", "rows", "--offset", "2")
    assert last.err == "rows 2-3 of 3\n"


def test_read_as_json_counts_within_the_selection(coatcheck: Run, log: str) -> None:
    page = coatcheck("read", f"{log}#L10-L12", "--offset", "8", "--limit", "7", "--json").json

    assert (page["content"], page["totalSize"], page["nextOffset"]) == ("line 11", 24, 15)


def test_search_looks_only_into_what_is_selected(coatcheck: Run, log: str, orders: str) -> None:
    found = coatcheck("search", f"{log}#L10-L19", "LINE 1")

    assert found.text.splitlines()[0].startswith("1:0: line 10")
    assert found.err == "10 of 10 matches\n"
    assert coatcheck("search", f"{orders}#/items/1", "łódź", "--json").json["totalMatches"] == 0
    assert coatcheck("search", f"{orders}#/items", "łódź", "--json").json["totalMatches"] == 1


def test_show_tells_of_the_part_and_whence_it_is(
    coatcheck: Run, in_terminal: Run, orders: str
) -> None:
    whole = coatcheck("show", orders, "--json").json
    part = coatcheck("show", f"{orders}#/items", "--json").json

    assert list(part) == list(whole)
    items = json.dumps(ORDERS["items"], ensure_ascii=False, separators=(",", ":"))
    assert part["pointer"] == f"{orders}#/items"
    assert (part["sizeBytes"], part["lengthChars"]) == (len(items.encode()), len(items))
    assert part["preview"] == items
    assert part["glimpse"] == "array of 3 objects {id: int, city: str}"
    assert part["contentType"] == "application/json"
    for key in ("name", "kind", "storedAt", "tool", "run"):
        assert part[key] == whole[key]
    assert json.loads(part["note"].removeprefix("retrieve_context(")[:-1]) == {
        "artifactId": f"{orders}#/items"
    }
    drawn = in_terminal("show", f"{orders}#/items").text
    assert "array of 3 objects {id: int, city: str}" in drawn
    assert "#/items" in drawn
    facts = coatcheck("show", f"{orders}#/items", "--facts").json
    assert facts != coatcheck("show", orders, "--facts").json
    assert [each["pointer"] for each in coatcheck("ls", "--json").json] == [orders]


def test_the_read_back_of_a_selector_with_quotes_is_a_call(coatcheck: Run, orders: str) -> None:
    selected = f"""{orders}#$["items"]"""

    note = coatcheck("show", selected, "--json").json["note"]

    assert json.loads(note.removeprefix("retrieve_context(")[:-1]) == {"artifactId": selected}


@pytest.mark.parametrize("command", [["read"], ["show"], ["search", "x"]])
@pytest.mark.parametrize(
    ("selector", "code", "error"),
    [
        ("/none", 1, "not-found"),
        ("$.items[*].none", 1, "not-found"),
        ("L9", 1, "not-found"),
        ("L0", 2, "invalid-argument"),
        ("items", 2, "invalid-argument"),
        ("$[", 2, "invalid-query"),
    ],
)
def test_a_selector_that_picks_nothing_is_not_found_and_a_wrong_one_wrong_usage(
    coatcheck: Run, orders: str, command: list[str], selector: str, code: int, error: str
) -> None:
    name, *more = command

    done = coatcheck(name, f"{orders}#{selector}", *more, "--json")

    assert (done.code, done.out) == (code, b"")
    assert done.failure["error"] == error
    assert done.failure["hint"]


@pytest.mark.parametrize("command", [["read"], ["show"], ["search", "x"]])
def test_an_unknown_pointer_with_a_selector_is_not_found(
    coatcheck: Run, command: list[str]
) -> None:
    name, *more = command
    coatcheck("put", "-", given=b"something else")

    done = coatcheck(name, f"{UNKNOWN}#/items", *more, "--json")

    assert (done.code, done.failure["error"]) == (1, "unknown-pointer")


def test_a_part_cannot_be_removed(coatcheck: Run, orders: str) -> None:
    done = coatcheck("rm", f"{orders}#/items", "--json")

    assert (done.code, done.failure["error"]) == (2, "invalid-argument")
    assert coatcheck("show", orders).code == 0


def test_a_name_with_a_hash_is_a_name(coatcheck: Run) -> None:
    coatcheck("put", "-", "--name", "issue #12", given=b"text")

    assert coatcheck("read", "issue #12").out == b"text"


def test_search_takes_a_pattern_where_it_is_told_so(
    coatcheck: Run, in_terminal: Run, log: str
) -> None:
    found = coatcheck("search", f"{log}#L10-L30", r"line \d5", "--regex")

    assert [line.partition(": ")[0] for line in found.text.splitlines()] == ["6:40", "16:120"]
    assert found.err == "2 of 2 matches\n"
    assert coatcheck("search", log, r"line \d5").err == "no match\n"
    assert coatcheck("search", log, r"LINE \d5$", "--regex", "--case-sensitive").err == "no match\n"
    assert "line 15" in in_terminal("search", log, r"LINE 15$", "--regex").text
    refused = coatcheck("search", log, "(?=x)", "--regex", "--json")
    assert (refused.code, refused.failure["error"]) == (2, "invalid-argument")
