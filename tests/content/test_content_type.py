"""What content types and names of files say, and what payloads may be called."""

import pytest

from coatcheck.content import check_content_type, names_text, type_of_name
from coatcheck.content._table import format_of
from coatcheck.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("a.csv", "text/csv"),
        ("/x/y.z/Report.JSON", "application/json"),
        ("data.jsonl", "application/x-ndjson"),
        ("app.log", "text/plain"),
        ("photo.jpeg", "image/jpeg"),
        ("session.har", "application/json"),
        ("Analysis.ipynb", "application/json"),
        ("uv.lock", "text/plain"),
        ("main.tf", "text/plain"),
        ("App.jsx", "text/plain"),
        ("core.1234", None),
        ("a.csv/core", None),
        (".bashrc", None),
        ("Makefile", None),
        ("", None),
        ("x.", None),
    ],
)
def test_type_of_a_name(name: str, content_type: str | None) -> None:
    assert type_of_name(name) == content_type


@pytest.mark.parametrize(
    ("content_type", "is_text"),
    [
        ("text/x-anything", True),
        ("Application/JSON; charset=UTF-8", True),
        ("application/vnd.api+json", True),
        ("text/plain; charset=latin-1", False),
        ("image/svg+xml", True),
        ("image/png", False),
    ],
)
def test_types_of_text(content_type: str, is_text: bool) -> None:
    assert names_text(content_type) is is_text


@pytest.mark.parametrize(
    ("content_type", "payload"),
    [
        ("image/png", b"\x89PNG\r\n\x1a\n..."),
        ("IMAGE/JPEG", b"\xff\xd8\xff\xe0"),
        ("image/gif", b"GIF89a"),
        ("image/webp", b"RIFF\n\n\n\nWEBP"),
        ("application/pdf", b"%PDF-1.7"),
        ("application/zip", b"PK\x03\x04"),
        ("application/gzip", b"\x1f\x8b\x08"),
        ("application/x-npy", b"\x93NUMPY\x01"),
        ("application/vnd.apache.arrow.file", b"ARROW1\0\0"),
        ("application/vnd.apache.parquet", b"PAR1"),
        ("application/json", b' {"a": [1, 2.5e3, null]}\n'),
        ("application/geo+json", b"[]"),
        ("text/plain", "né".encode()),
        ("text/plain; charset=latin-1", b"\xff"),
        ("application/x-strange", b"\0\xff"),
    ],
)
def test_what_a_payload_is_passes_and_nothing_like_it_does_not(
    content_type: str, payload: bytes
) -> None:
    check_content_type(content_type, payload, is_text=False, is_whole=True)

    if content_type not in {"text/plain", "text/plain; charset=latin-1", "application/x-strange"}:
        with pytest.raises(InvalidArgumentError) as caught:
            check_content_type(content_type, b"!" + payload, is_text=False, is_whole=True)
        assert "content type" in caught.value.hint


@pytest.mark.parametrize(
    ("content_type", "payload"),
    [
        ("text/plain", b"\xff"),
        ("text/plain", "né".encode()[:-1]),
        ("application/json", b'{"a": 1'),
        ("application/json", b""),
        ("application/json", b"[1]\xff"),
        ("application/json", b"NaN"),
        ("application/json; charset=latin-1", b'["\xe9"]'),
    ],
)
def test_what_a_payload_is_not_is_refused(content_type: str, payload: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="it is not"):
        check_content_type(content_type, payload, is_text=False, is_whole=True)


def test_a_head_may_be_cut_anywhere() -> None:
    check_content_type("text/plain", "né".encode()[:-1], is_text=False, is_whole=False)
    check_content_type("application/json", b'{"a": "\xc3', is_text=False, is_whole=False)

    with pytest.raises(InvalidArgumentError):
        check_content_type("text/plain", b"\xc3 ", is_text=False, is_whole=False)


def test_lone_surrogates_are_text_where_text_was_given_and_json_still() -> None:
    check_content_type("application/json", b'"\xed\xa0\xbd"', is_text=True, is_whole=True)

    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        check_content_type("application/json", b'"\xed\xa0\xbd"', is_text=False, is_whole=True)


def test_very_long_json_is_checked_at_its_ends() -> None:
    inside = b'"' + b"x" * (16 * 1024 * 1024) + b'"'
    check_content_type("application/json", b"[" + inside + b"] \n", is_text=True, is_whole=True)

    for payload in (b"[" + inside + b"] x", b"<" + inside):
        with pytest.raises(InvalidArgumentError):
            check_content_type("application/json", payload, is_text=True, is_whole=True)


@pytest.mark.parametrize("name", ["csv", "jsonl", "jsonlines", "x-jsonl", "x-jsonlines"])
def test_every_type_that_has_rows_is_read_as_text(name: str) -> None:
    assert names_text(f"application/{name}")
    assert format_of(f"application/{name}") is not None
