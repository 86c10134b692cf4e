"""What a file is, by its name and by its bytes."""

import pytest

from coatcheck.apps.cli._input import is_text, type_of


@pytest.mark.parametrize(
    ("file", "payload", "content_type"),
    [
        ("a.ndjson", b"", "application/x-ndjson"),
        ("a.JSONL", b"", "application/x-ndjson"),
        ("a.yml", b"", "application/yaml"),
        ("a.md", b"\xff", "text/markdown"),
        ("a.csv", b"", "text/csv"),
        ("a.log", b"", "text/plain"),
        ("a.json", b"{", "application/json"),
        ("a.html", b"", "text/html"),
        ("a.png", b"text", "image/png"),
        ("a.csv.gz", b"", "application/gzip"),
        ("a.tar.bz2", b"", "application/x-bzip2"),
        ("a.sh", b"echo", "text/plain"),
        ("a.ts", b"let x", "text/plain"),
        ("a.mp4", b"\x47\x00", "video/mp4"),
        ("a.unknown", "né".encode(), "text/plain"),
        ("a.unknown", b"a\0b", "application/octet-stream"),
        ("a.unknown", b"\xff", "application/octet-stream"),
        ("-", b'[{"a": 1}]', "application/json"),
        ("-", b"", "text/plain"),
    ],
)
def test_content_type_comes_from_name_and_bytes(
    file: str, payload: bytes, content_type: str
) -> None:
    assert type_of(payload, file) == content_type


def test_text_is_strict_utf8_without_a_nul() -> None:
    assert is_text(b"")
    assert is_text("漢字\n".encode())
    assert not is_text(b"\0")
    assert not is_text(b"\xed\xa0\x80")
