from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.apps.proxy._eras import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LEVEL_KEY,
    MODERN_FIELDS,
    SERVER_KEY,
    VERSION_KEY,
    Opening,
    error_for,
    is_modern,
    opening_of,
    params_for,
    questions_of,
    result_for,
    urls_asked,
)
from coatcheck.apps.proxy._messages import RpcError

OLD = Opening(
    era="handshake", version="2025-11-25", capabilities={"roots": {}}, client={"name": "n"}
)
NEW = Opening(era="modern", version="2026-07-28", capabilities={"roots": {}}, client={"name": "n"})
NAMES = st.text(min_size=1).filter(
    lambda name: name not in {"_meta", "inputResponses", "requestState", *MODERN_FIELDS}
)
PLAIN = st.dictionaries(NAMES, st.integers())


@given(params=PLAIN, meta=st.dictionaries(NAMES, st.integers()))
def test_request_translated_there_and_back_is_what_it_was(params: Any, meta: Any) -> None:
    asked: Any = params | ({"_meta": meta} if meta else {})

    there: Any = params_for("modern", asked, OLD, None)
    back = params_for("handshake", there, NEW, None)

    assert is_modern(there)
    assert there["_meta"][CAPABILITIES_KEY] == {"roots": {}}
    assert back == asked


@given(params=PLAIN)
def test_request_within_an_era_stays_as_it_is(params: Any) -> None:
    assert params_for("handshake", params, OLD, "debug") == params
    assert params_for("modern", params, NEW, "debug") == params


def test_answers_and_state_are_no_part_of_the_handshake_era() -> None:
    asked: Any = {
        "name": "x",
        "inputResponses": {},
        "requestState": "s",
        "_meta": {VERSION_KEY: "v"},
    }

    assert params_for("handshake", asked, NEW, None) == {"name": "x"}


def test_level_is_asked_for_unless_the_request_says_another() -> None:
    told: Any = params_for("modern", {}, OLD, "error")
    own: Any = params_for("modern", {"_meta": {LEVEL_KEY: "info"}}, OLD, "error")

    assert told["_meta"][LEVEL_KEY] == "error"
    assert own["_meta"][LEVEL_KEY] == "info"


@pytest.mark.parametrize("method", ["tools/list", "tools/call", "resources/read", "custom/x"])
@given(result=PLAIN)
def test_result_translated_there_and_back_is_what_it_was(method: str, result: Any) -> None:
    there = result_for("modern", "handshake", method, result)
    back = result_for("handshake", "modern", method, there)

    assert there["resultType"] == "complete"
    assert ("ttlMs" in there) is (method in {"tools/list", "resources/read"})
    assert back == result


@pytest.mark.parametrize("name", MODERN_FIELDS)
@pytest.mark.parametrize("value", ["input_required", 0, None, {}])
def test_member_of_the_modern_era_in_a_result_of_the_handshake_era_says_nothing(
    name: str, value: object
) -> None:
    result: Any = {"content": [], name: value}

    there = result_for("modern", "handshake", "tools/list", result)

    assert there == result_for("modern", "handshake", "tools/list", {"content": []})


@pytest.mark.parametrize("value", [[1], "text", 7, True])
def test_structured_value_that_the_handshake_era_does_not_know_becomes_an_object(
    value: object,
) -> None:
    result: Any = {"content": [], "structuredContent": value, "_meta": {SERVER_KEY: {}, "own": 1}}

    assert result_for("handshake", "modern", "tools/call", result) == {
        "content": [],
        "structuredContent": {"result": value},
        "_meta": {"own": 1},
    }


@pytest.mark.parametrize(
    ("result", "questions"),
    [
        ({"content": []}, None),
        ({"resultType": "complete"}, None),
        ({"resultType": "input_required"}, {}),
        ({"resultType": "input_required", "inputRequests": {"a": {}}}, {"a": {}}),
        ("text", None),
    ],
)
def test_questions_are_those_of_a_result_that_asks(result: object, questions: object) -> None:
    assert questions_of(result) == questions


def test_missing_resource_has_another_code_in_each_era() -> None:
    missing = RpcError(-32002, "Resource not found", {"uri": "x"})

    assert error_for("modern", missing).code == -32602
    assert error_for("handshake", missing).code == -32002
    assert error_for("modern", missing).data == {"uri": "x"}


@pytest.mark.parametrize("data", [None, {}, {"elicitations": []}, {"elicitations": "x"}, []])
def test_error_that_names_no_address_asks_nothing(data: object) -> None:
    assert urls_asked(RpcError(-32042, "Visit", data)) is None


@pytest.mark.parametrize(
    ("method", "params", "era", "version"),
    [
        ("initialize", {"protocolVersion": "2024-11-05"}, "handshake", "2024-11-05"),
        ("initialize", {"protocolVersion": "2031-01-01"}, "handshake", "2025-11-25"),
        ("initialize", None, "handshake", "2025-11-25"),
        ("tools/list", {"_meta": {VERSION_KEY: "2026-07-28"}}, "modern", "2026-07-28"),
    ],
)
def test_era_of_a_client_is_told_by_its_first_request(
    method: str, params: Any, era: str, version: str
) -> None:
    opening = opening_of(method, params)

    assert (opening.era, opening.version) == (era, version)


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({VERSION_KEY: "2031-01-01"}, -32022),
        ({VERSION_KEY: 7}, -32602),
        ({VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: []}, -32602),
        ({VERSION_KEY: "2026-07-28", CLIENT_KEY: "me"}, -32602),
    ],
)
def test_envelope_that_cannot_be_is_refused(meta: Any, code: int) -> None:
    with pytest.raises(RpcError) as refused:
        opening_of("tools/list", {"_meta": meta})

    assert refused.value.code == code
