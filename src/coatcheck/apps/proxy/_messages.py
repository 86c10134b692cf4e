"""JSON-RPC messages: read from lines, and written as lines. Nothing here knows what they mean."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from ...content import dumps, has_surrogates, loads
from ...errors import UnencodableValueError

Json = dict[str, object]
RequestId = float | str
"""A number is mostly whole, and need not be."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_GONE = -32000
"""Of the range that is free for implementations."""

_BOM = b"\xef\xbb\xbf"
_ID = rb'(-?\d{1,18}|"[^"\\]{0,200}")'
_RESULT_LAST = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*' + _ID + rb'\s*,\s*"result"\s*:\s*'
)
_RESULT_FIRST = re.compile(rb'\s*\{\s*"result"\s*:\s*')
_AFTER_RESULT = re.compile(
    rb'\s*,\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*' + _ID + rb"\s*\}\s*\Z"
)
_SOME_ID = re.compile(rb'"id"\s*:\s*' + _ID + rb"\s*[,}]")
_END_BYTES = 400
"""So far from an end of a line an id is looked for."""
_NOTHING = object()


class RpcError(Exception):
    """A request is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @classmethod
    def of_wire(cls, error: object) -> "RpcError":
        """Return the error that a peer sent, whatever shape it has."""
        if not isinstance(error, dict):
            return cls(INTERNAL_ERROR, str(error)[:2_000])
        fields = cast("Json", error)
        code, message = fields.get("code"), fields.get("message")
        return cls(
            code if isinstance(code, int) else INTERNAL_ERROR,
            message if isinstance(message, str) else "An error without a message.",
            fields.get("data"),
        )

    def to_wire(self) -> Json:
        """Return the error object of a response."""
        wire: Json = {"code": self.code, "message": self.message}
        return wire if self.data is None else wire | {"data": self.data}


class MalformedError(Exception):
    """A line is no message. Where an id can be made out, its request can be answered."""

    def __init__(self, code: int, reason: str, id: RequestId | None = None) -> None:  # noqa: A002
        super().__init__(reason)
        self.code = code
        self.id = id


@dataclass(slots=True, kw_only=True)
class Message:
    """A request (id and method), a notification (method alone) or a response (id alone)."""

    id: RequestId | None = None
    method: str | None = None
    params: Json | None = None
    result: object = None
    error: object = None
    """Of a response: its error object, None where there is a result."""
    raw: bytes | None = None
    """The JSON of `result` as it came, in one line."""
    size_bytes: int = 0
    """Of the line."""


def read_message(line: bytes) -> Message:
    """Return the message of a line.

    Raises:
        MalformedError: It is none.

    >>> read_message(b'{"jsonrpc":"2.0","id":7,"result":{"ok":1.50}}').raw
    b'{"ok":1.50}'
    """
    return _response(line) or _any_message(line)


def result_line(id: RequestId | None, result: object, raw: bytes | None = None) -> bytes:  # noqa: A002
    """Return the response that carries `result`; `raw` is its JSON, where that is known."""
    body = encode(result) if raw is None else raw
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (encode(id), body)


def error_line(id: RequestId | None, error: RpcError) -> bytes:  # noqa: A002
    """Return the response that carries an error."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}\n' % (encode(id), encode(error.to_wire()))


def request_line(id: RequestId, method: str, params: Mapping[str, object] | None) -> bytes:  # noqa: A002
    """Return a request."""
    return _line({"jsonrpc": "2.0", "id": id, "method": method}, params)


def notification_line(method: str, params: Mapping[str, object] | None) -> bytes:
    """Return a notification."""
    return _line({"jsonrpc": "2.0", "method": method}, params)


def as_id(value: object) -> RequestId | None:
    """Return what may be an id or a token; None of what a peer made up in its place."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return value if isinstance(value, str) or math.isfinite(value) else None


def encode(value: object) -> bytes:
    r"""Return JSON in one line of UTF-8.

    >>> encode({"text": "\ud800", "n": 12345678901234567890123})
    b'{"text":"\\ud800","n":12345678901234567890123}'
    """
    try:
        payload = dumps(value)
    except UnencodableValueError:  # nested deeper than is banked, but it came as JSON
        payload = None
    if payload is None or has_surrogates(payload):
        try:
            return json.dumps(value, separators=(",", ":")).encode()
        except RecursionError:
            return "".join(_pieces(value)).encode()
    return payload


def _pieces(value: object) -> Iterator[str]:
    """Yield the JSON of a value, however deep: whoever sends it can read no deeper than we do."""
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting:
        before, node = waiting.pop()
        yield before
        if node is _NOTHING:
            continue
        if isinstance(node, dict):
            inner = [
                (f"{json.dumps(key)}:", each)
                for key, each in cast("dict[str, object]", node).items()
            ]
            brackets = "{}"
        elif isinstance(node, list | tuple):
            inner = [("", each) for each in cast("Sequence[object]", node)]
            brackets = "[]"
        else:
            yield json.dumps(node)
            continue
        yield brackets[0]
        waiting.append((brackets[1], _NOTHING))
        waiting += [
            (f",{name}" if at else name, each) for at, (name, each) in reversed([*enumerate(inner)])
        ]


def _line(head: Json, params: Mapping[str, object] | None) -> bytes:
    return encode(head if params is None else head | {"params": params}) + b"\n"


def _response(line: bytes) -> Message | None:
    """Return a response whose result is its first or last member, else None.

    Of such a line the result alone is parsed, and its JSON known: what all serializers write.
    """
    found = _RESULT_LAST.match(line)
    if found is not None:
        end = len(line.rstrip())
        if line[end - 1 : end] != b"}":
            return None
        id_text, raw = found[1], line[found.end() : end - 1]
    else:
        start = _RESULT_FIRST.match(line)
        tail = _AFTER_RESULT.search(line, max(0, len(line) - _END_BYTES)) if start else None
        if start is None or tail is None:
            return None
        id_text, raw = tail[1], line[start.end() : tail.start()]
    try:
        result = _value(raw)  # one value, so nothing but the result stands there
    except ValueError:
        return None
    if b"\n" in raw:  # over HTTP; in JSON none is part of a text, and passed on it would end a line
        raw = raw.replace(b"\n", b" ")
    return Message(id=_id(id_text), result=result, raw=raw, size_bytes=len(line))


def _any_message(line: bytes) -> Message:
    text = line.removeprefix(_BOM)
    try:
        value = _value(text)
    except ValueError as error:
        raise MalformedError(PARSE_ERROR, "The line is not JSON.", _visible_id(text)) from error
    if isinstance(value, list):
        raise MalformedError(INVALID_REQUEST, "Batches are not supported: send one message a line.")
    if not isinstance(value, dict):
        raise MalformedError(INVALID_REQUEST, "A message is a JSON object.")
    return _of_fields(cast("Json", value), len(line))


def _of_fields(fields: Json, size_bytes: int) -> Message:
    given, method, params = fields.get("id"), fields.get("method"), fields.get("params")
    id_ = as_id(given)
    if given is not None and id_ is None:
        raise MalformedError(INVALID_REQUEST, "An id is a text or a number.")
    if "method" in fields:
        if fields.get("jsonrpc") != "2.0":
            raise MalformedError(INVALID_REQUEST, 'A message has "jsonrpc": "2.0".', id_)
        if not isinstance(method, str):
            raise MalformedError(INVALID_REQUEST, "A method is a text.", id_)
        if not isinstance(params, dict | None):
            raise MalformedError(INVALID_PARAMS, "Parameters are a JSON object.", id_)
        if "id" in fields and id_ is None:
            raise MalformedError(INVALID_REQUEST, "An id is a text or a number.")
        return Message(
            id=id_, method=method, params=cast("Json | None", params), size_bytes=size_bytes
        )
    if "result" not in fields and "error" not in fields:
        raise MalformedError(INVALID_REQUEST, "A message has a method, a result or an error.", id_)
    return Message(
        id=id_, result=fields.get("result"), error=fields.get("error"), size_bytes=size_bytes
    )


def _value(payload: bytes) -> object:
    """Return the value of JSON; that of NaN and infinity too, as Python's servers write them."""
    try:
        return loads(payload)
    except ValueError:
        try:
            return cast("object", json.loads(payload.decode("utf-8", "surrogatepass")))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _id(text: bytes) -> RequestId:
    return text[1:-1].decode() if text[:1] == b'"' else int(text)


def _visible_id(line: bytes) -> RequestId | None:
    """Return the id that stands near an end of a line that cannot be read."""
    for part in (line[:_END_BYTES], line[-_END_BYTES:]):
        found = _SOME_ID.search(part)
        if found is not None:
            try:
                return _id(found[1])
            except UnicodeDecodeError:
                return None
    return None
