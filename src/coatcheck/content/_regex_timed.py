"""Regular expressions by `regex`, where RE2 has no wheel. It may be slow, so a clock stops it."""

from collections.abc import Iterator
from typing import ClassVar

from ._find import Hits, decoded
from ._index import skip_chars
from ._regex_hits import Span, Spanned, byte_spans, char_before, span_hits
from ._regex_sets import WORD, write_python
from ._regex_tree import Node, write


class TimedEngine:
    """Finds by `regex`, in decoded text.

    Args:
        node: The pattern.
        is_ascii: Whether all texts to come are ASCII.
    """

    remedy: ClassVar[str] = " Or install RE2, which is many times as fast: the extra `re2`."

    def __init__(self, node: Node, *, is_ascii: bool) -> None:
        import regex

        edges = {"^": "^", "$": r"(?:\r?(?=\n))", "b": r"\b", "B": r"\B"}
        if not is_ascii:  # else what it takes for a word is what we do
            word = WORD.write(write_python)
            edges["b"] = f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
            edges["B"] = f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"
        source = write(node, lambda chars: chars.write(write_python), edges)
        self._program = regex.compile(source, regex.MULTILINE)

    def hits(self, text: bytes, start: int, stop: int, seconds: float) -> Iterator[Hits[Span]]:
        return span_hits(self._spans(text, start, stop, seconds))

    def _spans(self, text: bytes, start: int, stop: int, seconds: float) -> Iterator[Span]:
        lead = char_before(text, start)
        string = decoded(text[lead:stop])
        begin, end = int(lead < start), len(string)
        # Lines end before a newline only: where a line is cut it goes on.
        string += decoded(text[stop : skip_chars(text, 1, stop)]) or "\n"
        matches = self._program.finditer(string, begin, timeout=seconds, concurrent=True)
        yield from byte_spans(string, lead, self._cut(string, matches, end))

    def _cut(self, string: str, matches: Iterator[Spanned], end: int) -> Iterator[Span]:
        """Yield the matches before `end`, of one over it as much as is one."""
        for match in matches:
            first, last = match.span()
            if last > end:
                cut = self._program.match(string, first, end) if first < end else None
                if cut:
                    yield cut.span()
                return
            yield first, last
