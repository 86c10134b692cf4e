"""Bytes of a text or table have the glimpse of the same text, however many they are."""

import orjson
import pytest

from coatcheck.content import encode, glimpse
from coatcheck.records import Glimpse

LINE = "2026-03-01T10:00:00Z INFO é step\n"
LINES = 21_000_000 // len(LINE)


def glimpsed(value: str | bytes, content_type: str) -> Glimpse | None:
    encoding = encode(value, content_type)
    for _ in encoding.chunks():
        pass
    index = encoding.index
    return glimpse(
        encoding.value,
        content_type=content_type,
        size_bytes=index.size_bytes,
        budget_tokens=150,
        line_count=index.line_count,
        length_chars=index.length_chars,
        row_count=index.row_count,
    )


@pytest.mark.parametrize("at", [None, 7, LINES // 2, LINES - 7])
def test_long_bytes_of_text_have_its_glimpse(at: int | None) -> None:
    text = LINE * LINES
    if at is not None:
        text = f"{text[: at * len(LINE)]}ERROR: 漢\n{text[at * len(LINE) :]}"

    found = glimpsed(text.encode(), "text/plain")

    assert found is not None
    assert found == glimpsed(text, "text/plain")
    assert ("error" in found.facts) is (at in {7, LINES - 7})


def test_long_bytes_of_json_have_its_glimpse() -> None:
    rows = [{"id": at, "name": "x" * 170} for at in range(100_001)]
    payload = orjson.dumps(rows)

    found = glimpsed(payload, "application/json")

    assert found is not None
    assert found == glimpsed(payload.decode(), "application/json")
    assert str(found).startswith(
        "100,001 rows, 2 columns (values sampled from 20,000 rows); id int"
    )
