"""JSONPath, read from its text into records, and checked as RFC 9535 demands.

Written here, as `jsonpath-rfc9535` offers its syntax tree to nobody: version 2 made it anew, and
of version 1 numbers lose digits and long conditions fill the stack.
"""

import re

from ..errors import InvalidQueryError, shown
from ._iregexp import as_regex
from ._json_digits import number_of
from ._jsonpath_syntax import (
    FUNCTIONS,
    AllOf,
    AnyOf,
    Call,
    Comparison,
    Condition,
    Filter,
    Kind,
    Literal,
    Not,
    Operand,
    Query,
    Segment,
    Selector,
    Wildcard,
)

LONGEST_QUERY = 10_000
_DEEPEST = 32
"""Filters, brackets and calls within each other."""

_HINT = (
    "Forms: $.items[*].id, $..name, $['a-b'], $[0:10], $[-1], $[?@.price > 9 && @.tag == 'x'], "
    "$[?search(@.text, 'ab+c')]."
)

_NO_MORE = "a condition goes on with == != < <= > >= && or ||, or a comma or ] is missing"
_NO_PATTERN = (
    "the pattern is no I-Regexp, which has . [a-z] (a|b) * + ? {2,3} \\p{Lu}, [0-9] for \\d, and "
    "no look-around; or it is too large"
)

_LARGEST_INDEX = 2**53 - 1
_INDEX_DIGITS = 16

_BLANKS = re.compile(r"[ \t\n\r]*")
_NAME = re.compile(
    r"[A-Za-z_\u0080-\ud7ff\ue000-\U0010ffff][\w\u0080-\ud7ff\ue000-\U0010ffff]*", re.ASCII
)
_INDEX = re.compile(r"-?[0-9]+", re.ASCII)
_PLAIN_INDEX = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9])", re.ASCII)
_FUNCTION = re.compile(r"([a-z][a-z0-9_]*)\(", re.ASCII)
_WORD = re.compile(r"(true|false|null)(?![A-Za-z0-9_])", re.ASCII)
_OPERATOR = re.compile(r"==|!=|<=|>=|<|>")
_ESCAPE = re.compile(
    r"\\(?:([bfnrt/\\'\"])|u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u((?![dD][89a-fA-F])[0-9a-fA-F]{4}))"
)
_QUOTED = {
    quote: re.compile(rf"[^\x00-\x1f\\{quote}\ud800-\udfff]*", re.DOTALL) for quote in ("'", '"')
}
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}


def parse_jsonpath(text: str) -> Query:
    """Return the query that `text` is.

    Raises:
        InvalidQueryError: It is none. It says why, and where.

    Source: RFC 9535, sections 2.1 to 2.5.
    """
    if len(text) > LONGEST_QUERY:
        reason = f"a query has at most {LONGEST_QUERY:,} characters, and this one {len(text):,}"
        raise InvalidQueryError("jsonpath", reason, _HINT)
    return _Reader(text).whole()


class _Reader:
    """Reads one text from its start to its end: each method what it is named after."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Query:
        if not self._take("$"):
            raise self._wrong("a query starts with $")
        query = self._query(is_relative=False)
        if self._at < len(self._text):
            raise self._wrong("a segment starts with a dot or a bracket")
        return query

    def _query(self, *, is_relative: bool) -> Query:
        segments: list[Segment] = []
        while True:
            before = self._at
            self._skip_blanks()
            if self._take(".."):
                selectors = self._bracketed() if self._take("[") else (self._shorthand(),)
                segments.append(Segment(selectors, descends=True))
            elif self._take("."):
                segments.append(Segment((self._shorthand(),), descends=False))
            elif self._take("["):
                segments.append(Segment(self._bracketed(), descends=False))
            else:
                self._at = before  # blanks belong to what follows
                return Query(tuple(segments), is_relative)

    def _shorthand(self) -> Selector:
        if self._take("*"):
            return Wildcard.ALL
        name = self._match(_NAME)
        if name is None:
            raise self._wrong("a dot is followed by * or a name; other names are written ['a-b']")
        return name[0]

    def _bracketed(self) -> tuple[Selector, ...]:
        selectors = [self._selector()]
        self._skip_blanks()
        while self._take(","):
            selectors.append(self._selector())
            self._skip_blanks()
        if not self._take("]"):
            raise self._wrong(
                _NO_MORE if isinstance(selectors[-1], Filter) else "a comma or ] is missing"
            )
        return tuple(selectors)

    def _selector(self) -> Selector:
        self._skip_blanks()
        if self._take("*"):
            return Wildcard.ALL
        if self._take("?"):
            self._enter()
            condition = self._any_of()
            self._depth -= 1
            return Filter(condition)
        name = self._string()
        if name is not None:
            return name
        start = self._index()
        before = self._at
        self._skip_blanks()
        if self._take(":"):
            return self._slice(start)
        self._at = before
        if start is None:
            raise self._wrong("brackets hold a quoted name, an index, a range, * or ?")
        return start

    def _slice(self, start: int | None) -> slice:
        self._skip_blanks()
        stop = self._index()
        before = self._at
        self._skip_blanks()
        if not self._take(":"):
            self._at = before
            return slice(start, stop)
        before = self._at
        self._skip_blanks()
        step = self._index()
        if step is None:
            self._at = before
        return slice(start, stop, step)

    def _index(self) -> int | None:
        start = self._at
        digits = self._match(_INDEX)
        if digits is None:
            return None
        if _PLAIN_INDEX.fullmatch(digits[0]) is None:
            raise self._wrong("an index has no leading zero, and no minus before 0", start)
        if len(digits[0].lstrip("-")) > _INDEX_DIGITS or abs(int(digits[0])) > _LARGEST_INDEX:
            raise self._wrong("an index lies between -(2^53 - 1) and 2^53 - 1", start)
        return int(digits[0])

    def _string(self) -> str | None:
        start = self._at
        quote = next((quote for quote in _QUOTED if self._take(quote)), None)
        if quote is None:
            return None
        parts: list[str] = []
        while not self._take(quote):
            plain = self._match(_QUOTED[quote])
            if plain:
                parts.append(plain[0])
                continue
            escape = self._match(_ESCAPE)
            if escape is None or escape[1] in {"'", '"'} - {quote}:
                if self._at == len(self._text):
                    raise self._wrong("a quote is not closed", start)
                raise self._wrong("a quoted text holds no such escape or character")
            parts.append(_unescaped(escape))
        return "".join(parts)

    def _any_of(self) -> Condition:
        conditions = [self._all_of()]
        while self._take_operator("||"):
            conditions.append(self._all_of())
        return conditions[0] if len(conditions) == 1 else AnyOf(tuple(conditions))

    def _all_of(self) -> Condition:
        conditions = [self._single()]
        while self._take_operator("&&"):
            conditions.append(self._single())
        return conditions[0] if len(conditions) == 1 else AllOf(tuple(conditions))

    def _single(self) -> Condition:
        self._skip_blanks()
        start = self._at
        is_negated = self._take("!")
        self._skip_blanks()
        if self._take("("):
            self._enter()
            condition = self._any_of()
            self._depth -= 1
            self._skip_blanks()
            if not self._take(")"):
                raise self._wrong(_NO_MORE.replace("a comma or ]", ")"))
        else:
            operand = self._operand()
            operator = None if is_negated else self._operator()
            condition = (
                self._test(operand, start)
                if operator is None
                else self._comparison(operand, operator, start)
            )
        return Not(condition) if is_negated else condition

    def _operator(self) -> str | None:
        before = self._at
        self._skip_blanks()
        operator = self._match(_OPERATOR)
        if operator is None:
            self._at = before
            return None
        return operator[0]

    def _test(self, operand: Operand, start: int) -> Condition:
        if isinstance(operand, Literal):
            raise self._wrong("a literal is no condition: compare it with something", start)
        if isinstance(operand, Call) and FUNCTIONS[operand.name][1] is not Kind.TRUTH:
            raise self._wrong(f"{operand.name}() is no condition: compare it with something", start)
        return operand

    def _comparison(self, left: Operand, operator: str, start: int) -> Comparison:
        self._check_value(left, start)
        self._skip_blanks()
        start = self._at
        right = self._operand()
        self._check_value(right, start)
        return Comparison(left, operator, right)

    def _check_value(self, operand: Operand, start: int) -> None:
        if isinstance(operand, Query) and not operand.is_singular:
            raise self._wrong(
                "only a query of names and indices is compared, as it finds one", start
            )
        if isinstance(operand, Call) and FUNCTIONS[operand.name][1] is not Kind.VALUE:
            raise self._wrong(f"{operand.name}() is a condition already, and not compared", start)

    def _operand(self) -> Operand:
        if self._take("@"):
            return self._query(is_relative=True)
        if self._take("$"):
            return self._query(is_relative=False)
        start = self._at
        text = self._string()
        if text is not None:
            return Literal(text)
        if word := self._match(_WORD):
            return Literal(_WORDS[word[1]])
        if number := self._match(_NUMBER):
            return Literal(self._number(number, start))
        if function := self._match(_FUNCTION):
            return self._call(function[1], start)
        raise self._wrong(
            "expected is @, $, a quoted text, a number, true, false, null, or a function"
        )

    def _number(self, match: re.Match[str], start: int) -> int | float:
        if not match[1] and not match[2]:
            return number_of(match[0])
        number = float(match[0])
        if number in {float("inf"), float("-inf")}:
            raise self._wrong("the number is too large", start)
        return number

    def _call(self, name: str, start: int) -> Call:
        if name not in FUNCTIONS:
            raise self._wrong(f"the functions are {', '.join(FUNCTIONS)}", start)
        kinds, _ = FUNCTIONS[name]
        self._enter()
        arguments: list[Operand] = []
        self._skip_blanks()
        while not self._take(")"):
            if arguments and not self._take(","):
                raise self._wrong("a comma or ) is missing")
            self._skip_blanks()
            argument_start = self._at
            arguments.append(self._operand())
            if len(arguments) <= len(kinds):
                self._check_argument(name, arguments[-1], kinds[len(arguments) - 1], argument_start)
            if len(arguments) == 2 and name in {"match", "search"}:
                self._check_pattern(arguments[1], argument_start)
            self._skip_blanks()
        if len(arguments) != len(kinds):
            raise self._wrong(f"{name}() takes {len(kinds)}, and got {len(arguments)}", start)
        self._depth -= 1
        return Call(name, tuple(arguments))

    def _check_argument(self, name: str, argument: Operand, kind: Kind, start: int) -> None:
        fits = isinstance(argument, Query)
        if kind is Kind.VALUE:
            fits = (
                isinstance(argument, Literal)
                or (isinstance(argument, Query) and argument.is_singular)
                or (isinstance(argument, Call) and FUNCTIONS[argument.name][1] is Kind.VALUE)
            )
        if not fits:
            raise self._wrong(f"{name}() takes {kind.value} here", start)

    def _check_pattern(self, argument: Operand, start: int) -> None:
        # By RFC 9535 such a pattern matches nothing. Who wrote it out means something by it.
        pattern = argument.value if isinstance(argument, Literal) else None
        if isinstance(pattern, str) and as_regex(pattern) is None:
            raise self._wrong(_NO_PATTERN, start)

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong(f"filters, brackets and calls nest at most {_DEEPEST} deep")

    def _take_operator(self, operator: str) -> bool:
        before = self._at
        self._skip_blanks()
        if self._take(operator):
            return True
        self._at = before
        return False

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._at)
        if match is None or match.end() == match.start():
            return None
        self._at = match.end()
        return match

    def _skip_blanks(self) -> None:
        self._match(_BLANKS)

    def _wrong(self, reason: str, at: int | None = None) -> InvalidQueryError:
        at = self._at if at is None else at
        rest = self._text[at:]
        where = f"at character {at}, {shown(rest[:40])}" if rest else "at the end"
        return InvalidQueryError("jsonpath", f"{reason} ({where})", _HINT)


def _unescaped(escape: re.Match[str]) -> str:
    if escape[1]:
        return _ESCAPED.get(escape[1], escape[1])
    if escape[2]:
        high, low = int(escape[2], 16) & 0x3FF, int(escape[3], 16) & 0x3FF
        return chr(0x10000 + (high << 10 | low))
    return chr(int(escape[4], 16))
