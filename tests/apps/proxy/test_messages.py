import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.apps.proxy._messages import (
    MalformedError,
    RpcError,
    encode,
    error_line,
    notification_line,
    read_message,
    request_line,
    result_line,
)

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)
IDS = st.integers(-(2**63), 2**63) | st.text()


@given(value=JSON)
def test_what_is_encoded_is_one_line_that_reads_back_equal(value: Any) -> None:
    line = encode(value)

    assert b"\n" not in line
    assert json.loads(line.decode("utf-8")) == value


@given(id_=IDS, method=st.text(), params=OBJECTS)
def test_request_that_is_written_is_read(id_: int | str, method: str, params: Any) -> None:
    message = read_message(request_line(id_, method, params))

    assert (message.id, message.method, message.params) == (id_, method, params)


@given(method=st.text(), params=OBJECTS)
def test_notification_that_is_written_is_read(method: str, params: Any) -> None:
    message = read_message(notification_line(method, params))

    assert (message.id, message.method, message.params) == (None, method, params)


@given(id_=IDS, result=OBJECTS)
def test_result_that_is_written_is_read(id_: int | str, result: Any) -> None:
    message = read_message(result_line(id_, result))

    assert (message.id, message.result, message.error) == (id_, result, None)


@given(id_=st.integers(0, 10**12), result=JSON, is_first=st.booleans(), spaces=st.booleans())
def test_json_of_a_result_is_known_exactly_whatever_the_order_of_members(
    id_: int, result: Any, is_first: bool, spaces: bool
) -> None:
    separators = (", ", ": ") if spaces else (",", ":")
    head: dict[str, Any] = {"jsonrpc": "2.0", "id": id_}
    whole = {"result": result} | head if is_first else head | {"result": result}
    line = json.dumps(whole, separators=separators).encode()

    message = read_message(line)

    raw = json.dumps(result, separators=separators).encode()
    assert (message.id, message.result, message.raw) == (id_, result, raw)
    assert message.size_bytes == len(line)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{},"id":2}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"result":{}}',
        b'{"result":{},"result":{},"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}',
        b'{"id":1,"jsonrpc":"2.0","result":{}}',
    ],
)
def test_json_of_a_result_beside_which_more_stands_is_not_passed_on(line: bytes) -> None:
    message = read_message(line)

    assert message.result == {}
    assert message.raw is None


@given(line=st.binary(max_size=60))
def test_no_line_does_more_than_be_refused(line: bytes) -> None:
    code = 0
    try:
        read_message(line)
    except MalformedError as error:
        code = error.code

    assert code in {0, -32700, -32600, -32602}


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":', 7),
        (b'{"jsonrpc":"2.0","id":"seven","result":' + b"[" * 100_000, "seven"),
        (b'{"result":' + b"[" * 100_000 + b',"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","id":"\xff","result":', None),
        (b"{", None),
    ],
)
def test_id_of_a_line_that_cannot_be_read_is_found_where_it_stands(
    line: bytes, id_: object
) -> None:
    with pytest.raises(MalformedError) as refused:
        read_message(line)

    assert refused.value.id == id_


@pytest.mark.parametrize("error", ["text", None, [], {}, {"code": "x", "message": 7}])
def test_error_of_any_shape_becomes_one_that_clients_take(error: object) -> None:
    wire = RpcError.of_wire(error).to_wire()

    assert isinstance(wire["code"], int)
    assert isinstance(wire["message"], str)
    assert read_message(error_line(1, RpcError.of_wire(error))).error == wire


@pytest.mark.parametrize("levels", [100, 300, 1_020])
def test_what_could_be_read_can_be_written_however_deep(levels: int) -> None:
    inner = b"[" * (levels // 2) + b'{"a":1,"b":["\\ud800",{}]}' + b"]" * (levels // 2)
    line = b'{"jsonrpc":"2.0","id":7,"result":{"x":[%b,%b]}}' % (inner, inner)

    message = read_message(line)

    assert result_line(7, message.result) == line + b"\n"


def test_json_of_a_result_is_one_line_whatever_came() -> None:
    line = b'{"jsonrpc":"2.0","id":7,"result":{"n":\n1.50,\r\n"t":"\\n"\n}}'

    assert read_message(line).raw == b'{"n": 1.50,\r "t":"\\n" }'


@pytest.mark.parametrize("id_", ["1.0", "-2.5", "1e3", '"1.5"'])
def test_id_may_be_any_number_and_is_given_back_as_it_came(id_: str) -> None:
    message = read_message(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % id_.encode())

    again = json.loads(result_line(message.id, {}))["id"]
    assert (type(again), again) == (type(json.loads(id_)), json.loads(id_))


@pytest.mark.parametrize("id_", ["NaN", "Infinity", "true", "null", "[]", "{}"])
def test_id_that_is_no_number_and_no_text_is_refused(id_: str) -> None:
    with pytest.raises(MalformedError, match="An id is a text or a number"):
        read_message(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % id_.encode())
