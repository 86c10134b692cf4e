"""JMESPath, read from its text by `jmespath`: without its warnings, its cache, its long errors."""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from jmespath import exceptions, lexer, parser

from ..errors import InvalidQueryError, shown
from ._json_digits import number_of

_LONGEST_QUERY = 10_000
_LONGEST_NUMBER = 18
_LONGEST_REASON = 120

HINT = (
    "Forms: items[*].id, items[].name, [?price > `9` && tag == 'x'].{id: id, name: name}, "
    "length(@), sort_by(@, &price)[-1]; a text is 'x', a number `9`, another name \"a-b\"."
)


def parse_jmespath(text: str) -> dict[str, Any]:
    """Return the syntax tree of `text`, as `jmespath` makes it.

    Raises:
        InvalidQueryError: It is no JMESPath. It says why, and where.
        RecursionError: It nests too deeply.
    """
    if len(text) > _LONGEST_QUERY:
        reason = f"a query has at most {_LONGEST_QUERY:,} characters, and this one {len(text):,}"
        raise InvalidQueryError("jmespath", reason, HINT)
    try:
        return _Parser().tree(text)
    except exceptions.EmptyExpressionError:
        raise _wrong("there is no expression", text, 0) from None
    except exceptions.IncompleteExpressionError:
        raise _wrong("the expression is not complete", text, len(text)) from None
    except exceptions.LexerError as error:
        raise _wrong(error.message, text, error.lexer_position) from None
    except exceptions.ParseError as error:
        raise _wrong(error.msg, text, error.lex_position) from None


def names_in(tree: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys that an expression asks for and does not make itself, each once.

    >>> names_in(parse_jmespath("items[?price > `9`].{id: id, cost: price} | [].cost"))
    ('items', 'id', 'price')
    """
    asked: dict[str, None] = {}
    made: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node["type"] == "field":
            asked[node["value"]] = None
        # One that is made of its own kind, {id: id}, is asked for too.
        elif node["type"] == "key_val_pair" and node["children"][0].get("value") != node["value"]:
            made.add(node["value"])
        # Of a slice they are numbers.
        waiting += [each for each in reversed(node["children"]) if isinstance(each, dict)]
    return tuple(name for name in asked if name not in made)


# The package has no type hints.
_LEXER: Any = lexer.Lexer
_PARSER: Any = parser.Parser


class _Lexer(_LEXER):  # type: ignore[misc]
    def _consume_number(self) -> str:
        start = self._position
        digits: str = _LEXER._consume_number(self)  # noqa: SLF001 - `super` has no type here
        if len(digits) > _LONGEST_NUMBER:
            raise exceptions.LexerError(start, digits, "An index is too large")
        return digits

    def _consume_literal(self) -> dict[str, Any]:
        start = self._position
        literal: str = self._consume_until("`").replace("\\`", "`")
        try:
            value = json.loads(literal, parse_constant=_refuse, parse_int=number_of)
        except ValueError:
            # `text` without quotes is out of use, yet what most examples have. jmespath warns
            # of it, which is an exception where a host made warnings errors.
            try:
                value = json.loads(f'"{literal.lstrip()}"')
            except ValueError:
                raise exceptions.LexerError(
                    start, literal, "Between backticks is no JSON"
                ) from None
        return {"type": "literal", "value": value, "start": start, "end": self._position - start}


class _Parser(_PARSER):  # type: ignore[misc]
    def tree(self, text: str) -> dict[str, Any]:
        # Not by `parse`, which keeps trees of hundreds of expressions for the whole process.
        parsed: dict[str, Any] = self._do_parse(text).parsed
        return parsed

    def _parse(self, expression: str) -> parser.ParsedResult:
        self._tokens = list(_Lexer().tokenize(expression))
        self._index = 0
        parsed = self._expression(binding_power=0)
        if self._current_token() != "eof":
            token = self._lookahead_token(0)
            raise exceptions.ParseError(
                token["start"], token["value"], token["type"], "The expression goes on"
            )
        return parser.ParsedResult(expression, parsed)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _wrong(reason: str, text: str, at: int) -> InvalidQueryError:
    printable = "".join(char if char.isprintable() else "\ufffd" for char in reason)
    printable = printable[:1].lower() + printable[1:_LONGEST_REASON]
    rest = text[at:]
    if text and not rest:
        printable = "the expression is not complete"
    where = f"at character {at}, {shown(rest[:40])}" if rest else "at the end"
    return InvalidQueryError("jmespath", f"{printable} ({where})", HINT)
