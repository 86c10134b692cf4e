import json

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import (
    Encoding,
    decode,
    digest_of,
    encode,
    encoded_size,
    has_surrogates,
    weigh,
)
from coatcheck.errors import UnencodableValueError

TEXTS = st.text("aé€😀\ud800\n", max_size=60)


def payload_of(encoding: Encoding) -> bytes:
    return b"".join(encoding.chunks())


VALUES = (
    "",
    "plain",
    "é" * 200_000,
    "x\n" * 100_000,
    "\ud800",
    '{"a": 1}',
    b"",
    b"\xff" * 600_000,
    None,
    True,
    1.5,
    ["é" * 70_000, 2**70, "\ud800"],
    {"rows": list(range(50_000))},
)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_a_value_comes_back_from_its_payload(value: object) -> None:
    encoding = encode(value)

    payload = payload_of(encoding)

    assert decode(payload, encoding.form) == value
    assert type(decode(payload, encoding.form)) is type(value)
    assert encoding.value == value
    assert encoding.index.size_bytes == len(payload) == encoded_size(value)
    assert encoding.digest == f"xxh3:{xxhash.xxh3_128(payload).hexdigest()}" == digest_of(payload)


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_a_payload_may_be_passed_over_again(value: object) -> None:
    encoding = encode(value)

    first, digest, index = payload_of(encoding), encoding.digest, encoding.index

    assert payload_of(encoding) == first
    assert (encoding.digest, encoding.index) == (digest, index)


@pytest.mark.parametrize("value", ["é" * 200_000, b"x" * 1_000_000, [["é" * 100] * 5_000]])
def test_chunks_are_bounded(value: object) -> None:
    encoding = encode(value)

    assert all(0 < len(chunk) <= 1_048_576 for chunk in encoding.chunks())


@pytest.mark.parametrize("value", [bytearray(b"abc"), memoryview(b"abc")])
def test_bytes_in_a_buffer_are_copied(value: bytearray | memoryview) -> None:
    encoding = encode(value)

    if isinstance(value, bytearray):
        value[0] = 0
    assert type(encoding.value) is bytes
    assert encoding.value == payload_of(encoding) == b"abc"


def test_nothing_is_known_before_a_pass_is_complete() -> None:
    encoding = encode("x" * 200_000)

    next(encoding.chunks())

    for name in ("index", "digest"):
        with pytest.raises(RuntimeError, match="chunks"):
            getattr(encoding, name)


@pytest.mark.parametrize(
    ("value", "given", "form", "content_type", "extension"),
    [
        ("text", None, "text", "text/plain", "txt"),
        (' \n{"a": [1]}\t', None, "text", "application/json", "json"),
        ("[]", None, "text", "application/json", "json"),
        ('["\\ud800"]', None, "text", "application/json", "json"),
        ("[oops]", None, "text", "text/plain", "txt"),
        ("{]", None, "text", "text/plain", "txt"),
        ("1", None, "text", "text/plain", "txt"),
        ("[1]\n[2]", None, "text", "text/plain", "txt"),
        ("[1]", "text/csv; charset=utf-8", "text", "text/csv; charset=utf-8", "csv"),
        (b"[1]", None, "bytes", "application/octet-stream", "bin"),
        (b"x", "IMAGE/PNG", "bytes", "IMAGE/PNG", "png"),
        (b"x", "application/problem+json", "bytes", "application/problem+json", "json"),
        (b"x", "application/atom+xml", "bytes", "application/atom+xml", "xml"),
        (b"x", "text/x-log", "bytes", "text/x-log", "txt"),
        (b"x", "../../etc/passwd", "bytes", "../../etc/passwd", "bin"),
        (b"x", "", "bytes", "application/octet-stream", "bin"),
        ([1], None, "json", "application/json", "json"),
        ([1], "application/geo+json", "json", "application/geo+json", "json"),
    ],
)
def test_what_a_value_is_follows_from_value_and_given_type(
    value: object, given: str | None, form: str, content_type: str, extension: str
) -> None:
    encoding = encode(value, given)

    assert encoding.form == form
    assert encoding.content_type == content_type
    assert encoding.extension == extension


def type_after_a_pass(text: str) -> str:
    encoding = encode(text)
    for _ in encoding.chunks():
        pass
    return encoding.content_type


def test_an_object_in_text_is_parsed_up_to_64_mib_to_find_out() -> None:
    edge = 64 * 1024 * 1024

    assert type_after_a_pass("{" + " " * (edge - 2) + "}") == "application/json"
    assert type_after_a_pass("{" + " " * (edge - 1) + "}") == "text/plain"


@pytest.mark.parametrize("padding", [-2, -1])
def test_an_array_in_text_is_known_by_its_rows_where_it_is_long(padding: int) -> None:
    edge = 1024 * 1024
    rows = ",".join(f'{{"id":{number}}}' for number in range(1_000))
    spaces = " " * (edge + padding - len(rows))

    assert type_after_a_pass(f"[{rows}{spaces}]") == "application/json"
    assert type_after_a_pass(f"[{rows},{spaces}]") == "text/plain"
    assert type_after_a_pass(f"[{rows}]{spaces}[]") == "text/plain"


@pytest.mark.parametrize(
    ("payload", "content_type", "is_text"),
    [
        (b"a", "text/plain", True),
        (b"a", "Text/Plain; Charset=UTF-8", True),
        (b"a", 'text/plain;charset="us-ascii"', True),
        (b"a", "application/json", True),
        (b"a", "application/vnd.api+JSON", True),
        (b"a", "application/x-ndjson", True),
        (b"a", "application/yaml", True),
        ("é".encode() * 300_000, "text/plain", True),
        (b"x" + "é".encode() * 300_000, "text/plain", True),
        ("a".encode("utf-16-le"), "text/plain; charset=utf-16", False),
        ("é".encode("latin-1"), "text/plain", False),
        ("é".encode()[:1], "text/plain", False),
        (b"\xed\xa0\x80", "text/plain", False),
        (b"a", "application/octet-stream", False),
        (b"a", "image/png", False),
    ],
    ids=lambda case: repr(case)[:30],
)
def test_bytes_are_text_when_their_type_says_so_and_they_are_utf_8(
    payload: bytes, content_type: str, is_text: bool
) -> None:
    encoding = encode(payload, content_type)

    assert payload_of(encoding) == payload
    assert encoding.form == "bytes"
    assert (encoding.index.length_chars is not None) == is_text
    assert (encoding.head(10) is not None) == is_text


@given(TEXTS, st.integers(0, 70))
def test_the_head_is_the_head_of_the_payload(text: str, chars: int) -> None:
    assert encode(text).head(chars) == text[:chars]
    assert encode([text]).head(chars) == json.dumps([text], ensure_ascii=False)[:chars]
    clean = text.replace("\ud800", "ÿ")
    assert encode(clean.encode(), "text/plain").head(chars) == clean[:chars]


@given(
    TEXTS | st.binary(max_size=60) | st.lists(st.integers() | TEXTS, max_size=8),
    st.integers(0, 80),
)
def test_a_value_is_weighed_against_its_encoded_size(value: object, limit_bytes: int) -> None:
    encoding = weigh(value, limit_bytes)

    if encoded_size(value) < limit_bytes and not has_surrogates(payload_of(encode(value))):
        assert encoding is None
    else:
        assert encoding is not None
        assert payload_of(encoding) == payload_of(encode(value))


@pytest.mark.parametrize("value", ["x" * 100, "é" * 50, "😀" * 25, b"x" * 100, ["x" * 96]])
def test_from_exactly_the_limit_on_a_value_is_large(value: object) -> None:
    assert encoded_size(value) == 100
    assert weigh(value, 101) is None
    assert weigh(value, 100) is not None


def test_a_buffer_weighs_its_bytes() -> None:
    floats = memoryview(bytes(16)).cast("d")

    assert encoded_size(floats) == 16
    assert weigh(floats, 17) is None
    assert weigh(floats, 16) is not None


def test_a_value_without_encoding_has_no_size() -> None:
    with pytest.raises(UnencodableValueError):
        encoded_size({1j})
    with pytest.raises(UnencodableValueError):
        encode({1j})
    with pytest.raises(UnencodableValueError):
        weigh({1j}, 10)


def test_size_hint_is_known_before_a_pass() -> None:
    assert encode("é" * 10).size_hint == 10
    assert encode(b"abc").size_hint == 3
    assert encode(["é"]).size_hint == 6


def test_a_type_named_by_a_host_does_not_change_the_text() -> None:
    text = '{"b": 1,\r\n "a": 2}'

    assert payload_of(encode(text)) == text.encode()
