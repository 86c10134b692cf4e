r"""RE2 beside letters that it does not know: each way in which ``\b`` is decided."""

import pytest

from coatcheck.content._regex_re2 import BorderedRe2Engine, Re2Engine
from coatcheck.content._regex_syntax import parse_regex
from coatcheck.errors import InvalidArgumentError


def hits(text: str, pattern: str) -> list[str]:
    payload = text.encode("utf-8", "surrogatepass")
    engine = BorderedRe2Engine(parse_regex(pattern, ignore_case=True))
    spans = (
        found.span(number)
        for found in engine.hits(payload, 0, len(payload), 1.0)
        for number in range(len(found))
    )
    return [payload[first:last].decode("utf-8", "surrogatepass") for first, last in spans]


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("é cat, cats, cat", r"\bcat\b", ["cat", "cat"]),  # beside letters of ASCII
        ("écat caté cat", r"\bcat\b", ["cat"]),  # beside others, on both sides
        ("écat cat\ncat é", r"\bcat\b", ["cat", "cat"]),  # a line of its own each
        ("cat\u0301 cat", r"\bcat\b", ["cat"]),  # a mark belongs to the word
        ("los disk\u212a dis\u212a", r"\bdisk\b", ["dis\u212a"]),  # the sign of Kelvin is a k
        ("éa aé a", r"\b\w\b", ["a"]),  # letters of any kind
        ("né, né", r"n\b|né\b", ["né", "né"]),
        ("é ab-cd ab", r"\bab(?:-cd)?\b", ["ab-cd", "ab"]),
        ("é abé-cd", r"ab\b|ab.-cd\b", ["abé-cd"]),
        ("éx xé x x.", r"\Bx|x\B", ["x", "x"]),
        ("é! ?é", r"\b[!?]|[!?]\b", ["!", "?"]),
        ("漢字 漢", r"\b漢\b", ["漢"]),
        ("é a\r\nb a é", r"\ba\b.{0,2}$", ["a\r", "a é"]),
        ("aé-a", r"(?:a\b|-)+", ["-a"]),
        ("\ud800a a\udfffa", r"\ba\b", ["a", "a", "a"]),  # halves of pairs are no letters
    ],
)
def test_a_border_is_where_letters_of_any_kind_end(
    text: str, pattern: str, expected: list[str]
) -> None:
    assert hits(text, pattern) == expected


def test_a_part_of_a_line_is_searched_as_what_it_is() -> None:
    payload = "éa a aé\na".encode()
    engine = BorderedRe2Engine(parse_regex(r"\ba\b", ignore_case=True))

    def places(start: int, stop: int) -> list[tuple[int, int]]:
        return [
            found.span(number)
            for found in engine.hits(payload, start, stop, 1.0)
            for number in range(len(found))
        ]

    assert places(2, len(payload)) == [(4, 5), (10, 11)]
    assert places(2, 7) == [(4, 5)]
    assert places(5, 7) == []


@pytest.mark.parametrize("pattern", [r"[\p{L}\p{N}]{250}\w{250}", r"(?:[^\w-]{1,20}\W{1,20}){12}"])
def test_a_pattern_that_takes_too_much_memory_is_refused(pattern: str) -> None:
    node = parse_regex(pattern, ignore_case=True)

    with pytest.raises(InvalidArgumentError, match="too large") as refused:
        Re2Engine(node, is_ascii=False)

    assert "fewer counted repeats" in refused.value.hint


def test_more_kinds_of_letters_than_can_be_told_apart_are_refused() -> None:
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 80)))

    with pytest.raises(InvalidArgumentError, match="too large"):
        hits(letters + "x", letters + r"\b")
