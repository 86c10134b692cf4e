"""Ages and sizes as people type them."""

import pytest

from coatcheck.apps._amounts import age_seconds, size_bytes
from coatcheck.errors import InvalidArgumentError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90s", 90), ("5m", 300), ("12h", 43_200), (" 7d ", 604_800), ("0.5w", 302_400)],
)
def test_an_age_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert age_seconds(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "7", "d", "-1d", "7 days", "1e9s", "٣d", "7D", "1" * 16 + "s"]
)
def test_any_other_text_is_no_age(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="an age is a number") as refused:
        age_seconds(text)

    assert "7d" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512", 512),
        ("1kB", 1_000),
        ("10GB", 10**10),
        ("1.5 MiB", 1_572_864),
        ("2tib", 2**41),
    ],
)
def test_a_size_is_a_number_with_or_without_a_unit(text: str, size: int) -> None:
    assert size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", "10 gigabytes", "1e9", "inf", "nan", "1,000"])
def test_any_other_text_is_no_size(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="a size is a number") as refused:
        size_bytes(text)

    assert "10GB" in refused.value.hint
