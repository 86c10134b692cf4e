r"""I-Regexp, the regular expressions of JSONPath: checked, and written as `regex` reads them.

Patterns come from models, and from payloads too: ``match(@.name, @.pattern)``. So none reaches an
engine that it could bring down. `regex` writes counted repeats out, at some hundred bytes a step:
``((a{1000}){1000}){1000}`` would take all memory before a timeout could count.
"""

import re

LONGEST_PATTERN = 1_000
_MOST_STEPS = 10_000
"""Single characters that a pattern matches once its counted repeats are written out."""
_DEEPEST = 50

_ESCAPE = r"\\[(-+\-.?\[-^nrt{-}]"
_CATEGORY = (
    r"\\[pP]\{(?:L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?"
    r"|Z[lps]?|S[ckmo]?|C[cfno]?)\}"
)
_MEMBER = rf"(?:[^\-\[\\\]\ud800-\udfff]|{_ESCAPE})"
_MEMBERS = rf"(?:{_MEMBER}-{_MEMBER}|{_MEMBER}|{_CATEGORY})"

_TOKEN = re.compile(
    rf"""
    (?P<atom> {_ESCAPE} | {_CATEGORY} | \. )
  | (?P<class> \[ (?: \^ | (?!\^) ) (?: - | {_MEMBERS} ) {_MEMBERS}* -? \] )
  | (?P<repeat> [*+?] | \{{ (?P<least> [0-9]+ ) (?P<range> , (?P<most> [0-9]+ )? )? \}} )
  | (?P<mark> [(|)] )
  | (?P<plain> [^()*+.?\[\\\]{{|}}\ud800-\udfff] )
    """,
    re.ASCII | re.VERBOSE,
)
_IN_CLASS = re.compile(rf"{_CATEGORY}|{_ESCAPE}|[^\\]", re.DOTALL)
_RANGE = re.compile(rf"{_CATEGORY}|({_MEMBER})-({_MEMBER})|{_MEMBER}")
_CONTROLS = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}
_WRITTEN = {"(": "(?:", ".": r"[^\n\r]", "^": r"\A", "$": r"\Z"}
_SAFE_DIGITS = 5


class _Group:
    """What stands between two brackets so far: how many steps it is, and whether one can repeat."""

    def __init__(self) -> None:
        self.steps = 0
        self.last: int | None = None
        """Steps of the atom that a repeat would follow on; None where there is none."""

    def add(self, steps: int) -> None:
        self.steps += steps
        self.last = steps

    def repeat(self, times: int) -> None:
        self.steps += (self.last or 0) * (times - 1)
        self.last = None  # no repeat follows on another


def as_regex(pattern: str) -> str | None:
    r"""Return an I-Regexp as a pattern of `regex`, None where it is none, or too large.

    A caret and a dollar sign are plain characters in RFC 9485. Everybody means the start and the
    end by them, and so do the compliance tests of JSONPath.

    Source: RFC 9485.

    >>> as_regex("a.[0-9&]{2}")
    'a[^\\n\\r][0-9\\&]{2}'
    >>> as_regex("(?=a)") is None
    True
    """
    if len(pattern) > LONGEST_PATTERN:
        return None
    groups = [_Group()]
    written: list[str] = []
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        if token is None or not _is_placed(token, groups):
            return None
        written.append(_written(token))
        at = token.end()
    if len(groups) > 1 or groups[0].steps > _MOST_STEPS:
        return None
    return "".join(written)


def _is_placed(token: re.Match[str], groups: list[_Group]) -> bool:
    """Take note of a token. Return whether it may stand here, and the pattern is small enough."""
    group = groups[-1]
    match token.lastgroup, token[0]:
        case "mark", "(" if len(groups) < _DEEPEST:
            groups.append(_Group())
        case "mark", ")" if len(groups) > 1:
            groups.pop()
            groups[-1].add(group.steps + 1)
        case "mark", "|":
            group.last = None
        case "repeat", _ if group.last is not None:
            group.repeat(_times(token))
        case (("atom" | "plain"), _):
            group.add(1)
        case "class", text if _runs_forward(text):
            group.add(1)
        case _:
            return False
    return groups[-1].steps <= _MOST_STEPS


def _runs_forward(text: str) -> bool:
    """Return whether all ranges of a character class do."""
    ranges = (match.groups() for match in _RANGE.finditer(text, 1, len(text) - 1))
    return all(_character(first) <= _character(last) for first, last in ranges if first)


def _character(member: str) -> str:
    return _CONTROLS.get(member, member[-1])


def _times(token: re.Match[str]) -> int:
    """Return how often a repeat is written out; where its numbers are wrong, too often."""
    if token["least"] is None:
        return 1
    numbers = [number for number in (token["least"], token["most"]) if number]
    if any(len(number) > _SAFE_DIGITS for number in numbers) or int(numbers[0]) > int(numbers[-1]):
        return _MOST_STEPS + 1
    return max(1, int(numbers[-1]))


def _written(token: re.Match[str]) -> str:
    text = token[0]
    if token.lastgroup == "class":
        start = 2 if text.startswith("[^") else 1
        return text[:start] + _IN_CLASS.sub(_member, text[start:-1]) + "]"
    if text in _WRITTEN:
        return _WRITTEN[text]
    return re.escape(text) if token.lastgroup == "plain" else text


def _member(match: re.Match[str]) -> str:
    """Escape what means something between brackets to `regex`, and nothing to I-Regexp."""
    text = match[0]
    return text if len(text) > 1 or text.isalnum() or text == "-" else "\\" + text
