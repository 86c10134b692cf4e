"""`retrieve_context`: selections, patterns, queries, and arguments that do not go together."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Bank, Kind, Limits
from coatcheck.records import Match, Matches
from coatcheck.stores import MemoryStore
from coatcheck.tools import artifact_tools, retrieval_tools
from coatcheck.tools._retrieve import _matches_reply

ROWS: list[Any] = [{"id": number, "city": ("Łódź", "Lyon")[number % 2]} for number in range(3_000)]
LOG = "".join(f"{number} {'ERROR' if number == 700 else 'info'} żółć\n" for number in range(1_000))


@pytest.fixture
async def bank() -> Bank:
    bank = Bank(MemoryStore(), kinds=[Kind("product set", prefix="ps")])
    await bank.put(ROWS, name="rows")
    await bank.put(LOG, name="log")
    return bank


async def pointer_of(bank: Bank, name: str) -> str:
    artifact = await bank.find(name)
    assert artifact is not None
    return artifact.pointer


async def asked(bank: Bank, **arguments: object) -> Any:
    (tool,) = retrieval_tools(bank)
    return json.loads(await tool.call(arguments))


async def test_a_selection_is_read_and_searched_as_a_whole_is(bank: Bank) -> None:
    rows, log = await pointer_of(bank, "rows"), await pointer_of(bank, "log")

    page = await asked(bank, artifactId=f"{rows}#/1")
    assert page == {
        "content": '{"id":1,"city":"Lyon"}',
        "totalSize": 22,
        "hasMore": False,
        "offset": 0,
        "limit": 50_000,
    }
    page = await asked(bank, artifactId=f"{rows}#$[*].id", offset=10, limit=6)
    assert (page["content"], page["nextOffset"]) == (",5,6,7", 16)
    found = await asked(bank, artifactId=f"{log}#L700-L800", search="error")
    assert [match["line"] for match in found["matches"]] == [2]
    whole = await artifact_tools(bank)[1].call({"pointerOrName": f"{log}#L701"})
    assert whole == "700 ERROR żółć\n"
    column = await artifact_tools(bank)[1].call({"pointerOrName": f"{rows}#$[*].id"})
    assert json.loads(column) == list(range(3_000))


async def test_rows_of_an_array_are_selected_and_read_as_json(bank: Bank) -> None:
    pointer = (await bank.put(np.arange(20_000.0).reshape(10_000, 2))).pointer

    whole = await asked(bank, artifactId=pointer, limit=1)
    part = await asked(bank, artifactId=f"{pointer}#row=2-3")

    assert (whole["unit"], whole["content"]) == ("rows", "[[0.0,1.0]]")
    assert part["content"] == "[[2.0,3.0],[4.0,5.0]]"
    assert "unit" not in part


@pytest.mark.parametrize(
    ("artifact", "code"),
    [
        ("{rows}#/9999", "not-found"),
        ("{rows}#$[*].nope", "not-found"),
        ("{log}#/0", "not-found"),
        ("{rows}#nope", "invalid-argument"),
        ("{rows}#L0", "invalid-argument"),
        ("{rows}#$[", "invalid-query"),
        ("art:00000000-0000-4000-8000-000000000005#/0", "unknown-pointer"),
    ],
)
async def test_a_selector_that_fails_says_why(bank: Bank, artifact: str, code: str) -> None:
    named = {name: await pointer_of(bank, name) for name in ("rows", "log")}
    text = artifact.format(**named)

    for more in ({}, {"search": "x"}):
        failure = await asked(bank, artifactId=text, **more)

        assert failure["error"] == code
        assert failure["message"]
        assert failure["hint"]


async def test_a_pattern_is_searched_for_on_request_only(bank: Bank) -> None:
    found = await asked(bank, artifactId="log", search=r"\d+ ERROR \w+", regex=True)
    literal = await asked(bank, artifactId="log", search=r"\d+ ERROR \w+", regex=False)

    assert [match["line"] for match in found["matches"]] == [701]
    assert found["totalMatches"] == 1
    assert literal["totalMatches"] == 0


def test_matches_that_there_was_no_time_to_count_have_no_total() -> None:
    found = Matches(
        matches=(Match(7, 1, 0, "before x"),),
        match_count=1,
        total_matches=None,
        counted_matches=5_000,
        truncated=True,
        next_search_offset=90,
    )

    reply = json.loads(_matches_reply(found))

    del reply["matches"]
    assert reply == {
        "matchCount": 1,
        "totalMatches": None,
        "countedMatches": 5_000,
        "truncated": True,
        "nextSearchOffset": 90,
    }


async def test_a_query_answers_with_its_language_and_value(bank: Bank) -> None:
    assert await asked(bank, artifactId="rows", query="$[-1].id") == {
        "language": "jsonpath",
        "rowCount": 1,
        "value": 2_999,
    }
    assert await asked(bank, artifactId="rows", query="length(@)") == {
        "language": "jmespath",
        "rowCount": 1,
        "value": 3_000,
    }
    counted = await asked(
        bank,
        artifactId="rows",
        query="SELECT city, count(*) AS n FROM data GROUP BY city ORDER BY city",
    )
    assert counted == {
        "language": "sql",
        "rowCount": 2,
        "value": [{"city": "Lyon", "n": 1_500}, {"city": "Łódź", "n": 1_500}],
    }


async def test_a_large_answer_and_one_to_be_saved_come_as_an_envelope(bank: Bank) -> None:
    large = await asked(bank, artifactId="rows", query="$[*]")
    saved = await asked(bank, artifactId="rows", query="$[0:2].id", saveAs="two")

    for envelope in (large, saved):
        assert list(envelope)[:4] == ["pointer", "preview", "sizeBytes", "note"]
        assert envelope["note"] == f'retrieve_context({{"artifactId":"{envelope["pointer"]}"}})'
    assert await bank.get("two") == [0, 1]
    assert saved["pointer"] == await pointer_of(bank, "two")
    assert await bank.get(large["pointer"]) == ROWS
    assert (await asked(bank, artifactId=saved["pointer"]))["content"] == "[0,1]"


async def test_a_hint_is_part_of_the_reply_only_where_a_key_is_nowhere(bank: Bank) -> None:
    await bank.put([{"id": 1}], name="one")

    assert await asked(bank, artifactId="one", query="[?idd > `0`]") == {
        "language": "jmespath",
        "rowCount": 0,
        "value": [],
        "hint": "It has no key 'idd', but 'id'.",
    }
    assert "hint" not in await asked(bank, artifactId="one", query="[?id > `1`]")


async def test_a_query_looks_at_what_is_selected(bank: Bank) -> None:
    pointer = (await bank.put({"total": 3, "items": ROWS[:3]})).pointer

    for query in ("SELECT max(id) AS m FROM data", "$[*].id", "[].id"):
        reply = await asked(bank, artifactId=f"{pointer}#/items", query=query)
        assert reply["value"] in ([{"m": 2}], [0, 1, 2])


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"search": "x", "query": "$"}, "search and query exclude each other."),
        ({"query": "$", "offset": 5}, "offset and limit do not go with query."),
        ({"query": "$", "limit": 5}, "offset and limit do not go with query."),
        ({"query": "$", "regex": True}, "regex goes with search: it says that the text is a"),
        ({"regex": True}, "regex goes with search: it says that the text is a pattern."),
        ({"saveAs": "it"}, "saveAs goes with query: it names the answer."),
        ({"search": "x", "saveAs": "it"}, "saveAs goes with query: it names the answer."),
        ({"search": "x", "regex": "true"}, "regex must be true or false, got 'true'"),
        ({"search": "x", "regex": 1}, "regex must be true or false, got 1"),
        ({"query": 7}, "query must be a string, got 7"),
        ({"query": "$", "saveAs": True}, "saveAs must be a string, got True"),
    ],
)
async def test_arguments_that_contradict_each_other_are_refused_by_their_rule(
    bank: Bank, arguments: dict[str, object], rule: str
) -> None:
    failure = await asked(bank, artifactId="rows", **arguments)

    assert failure["error"] == "invalid-argument"
    assert failure["message"].startswith(rule)
    assert failure["hint"]


@pytest.mark.parametrize(
    "nothing",
    [
        {"offset": 0},
        {"limit": None},
        {"regex": False},
        {"regex": None, "search": None, "saveAs": None},
    ],
)
async def test_what_says_nothing_contradicts_nothing(
    bank: Bank, nothing: dict[str, object]
) -> None:
    reply = await asked(bank, artifactId="rows", query="$[0].id", **nothing)

    assert reply["value"] == 0


async def test_each_parameter_has_its_json_type_and_one_is_required(bank: Bank) -> None:
    (tool,) = retrieval_tools(bank)

    assert {name: each["type"] for name, each in tool.parameters["properties"].items()} == {
        "artifactId": "string",
        "offset": "integer",
        "limit": "integer",
        "search": "string",
        "query": "string",
        "regex": "boolean",
        "saveAs": "string",
    }
    assert tool.parameters["required"] == ["artifactId"]


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.sampled_from(["rows", "log", "$[*].id", "id", "SELECT 1", "select id from data", "x"])
)


@given(
    st.fixed_dictionaries(
        {"artifactId": st.sampled_from(["rows", "log", "none"]) | ANYTHING},
        optional=dict.fromkeys(("offset", "limit", "search", "query", "regex", "saveAs"), ANYTHING),
    )
)
async def test_whatever_a_model_sends_is_answered_within_bounds(arguments: Any) -> None:
    bank = Bank(MemoryStore(), limits=Limits(inline_bytes=2_000))
    await bank.put(ROWS[:50], name="rows")
    await bank.put(LOG[:500], name="log")
    (tool,) = retrieval_tools(bank)

    reply = await tool.call(arguments)

    assert isinstance(json.loads(reply), dict)
    assert len(reply) < 10_000


async def test_that_text_has_no_paths_is_told(bank: Bank) -> None:
    for query in ("$[*].id", "length(@)"):
        failure = await asked(bank, artifactId="log", query=query)

        assert failure["error"] == "invalid-query"
        assert failure["hint"]
