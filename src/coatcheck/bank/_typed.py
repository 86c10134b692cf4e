"""What a stored value becomes where a type is declared: in `get`, and for a tool's parameter."""

import types
from collections.abc import Iterable, Iterator
from decimal import Decimal
from operator import countOf
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin

from ..content import as_live, encode, is_live_class, loads, plain_rows, rows_of_text
from ..errors import InvalidArgumentError, UnencodableValueError, shown
from ._stored import StoredValidator

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

_ANY_OBJECT = ((str, Any), (str, object))
_PLACE_PARTS = 8
_WHY_CHARS = 200
# Errors of pydantic whose text holds a part of the value, or what someone's validator said.
_QUOTING = frozenset(
    {
        "assertion_error",
        "get_attribute_error",
        "iteration_error",
        "mapping_type",
        "union_tag_invalid",
        "value_error",
    }
)


def as_declared(value: object, declared: object, content_type: str | None = None) -> object:
    """Return a stored value as a declared type.

    Args:
        value: As `get` returns it without a type.
        declared: The type.
        content_type: Of the artifact, where the value is all of it: tells which text is a table.

    Raises:
        InvalidArgumentError: It does not fit.
    """
    from pydantic import TypeAdapter

    if _is_already(value, declared):
        return value
    if live_class(declared) is not None:
        return as_found(value, declared, "the value", content_type)
    adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", declared))
    stored = StoredValidator(adapter)
    return fit_stored(adapter, stored, value, declared, "the value", content_type=content_type)


def fit_stored(
    adapter: "TypeAdapter[Any]",
    stored: StoredValidator,
    value: object,
    declared: object,
    what: str,
    *,
    content_type: str | None = None,
) -> object:
    """Return a stored value as a declared type.

    Args:
        adapter: Validates text and bytes: what is in them is not of our making.
        stored: Validates what we encoded, as the same type.
        value: As `get` returns it without a type.
        declared: The type.
        what: What a message calls it.
        content_type: As of `as_declared`.

    Raises:
        InvalidArgumentError: It does not fit.
    """
    is_text = isinstance(value, str | bytes)
    try:
        return fit(adapter if is_text else stored, readings(value, declared, content_type), what)
    except InvalidArgumentError as error:
        # Text may be what a single value was encoded as. And a strict model takes a time from
        # JSON, but not from a str.
        try:
            if is_text:
                return stored.validate_python(value)
            return stored.validate_json(_payload(value))
        except ValueError:
            pass
        if is_text:
            error.hint += " Of CSV, TSV and NDJSON `#$` behind the pointer gives the rows."
        raise


def readings(value: object, declared: object, content_type: str | None = None) -> Iterator[object]:
    """Yield what a stored value may mean for a declared type, best first.

    `str` takes the payload's text unparsed, `bytes` the payload. `Any` takes what was put. A
    `Decimal` takes text as it is, digit by digit. All else takes the payload parsed by its
    format, then what was put, then the text; of text that is a table its rows come last, as
    whoever takes both most likely means the text.
    """
    bare = _bare(declared)
    if bare is bytes:
        yield _payload(value)
    elif bare is str:
        yield as_text(value)
    elif bare in (Any, object, None):
        yield value
    elif bare is Decimal:
        yield value
        yield parsed(value)
    else:
        yield parsed(value)
        yield value
        yield as_text(value)
        rows = _rows_of(value, content_type)
        if rows is not None:
            yield rows


def live_class(declared: object) -> type | None:
    """Return the class of arrays or frames that is declared, None where it is none."""
    bare = _bare(declared)
    bare = get_origin(bare) or bare
    return bare if isinstance(bare, type) and is_live_class(bare) else None


def as_found(value: object, declared: object, what: str, content_type: str | None = None) -> object:
    """Return a value for a type that pydantic does not know.

    A frame becomes that of the library whose class is declared, a list an array, a list of
    objects a frame; of another class than those all stays as it is, and so does None.

    Raises:
        InvalidArgumentError: It is no array or frame of the class that is declared.
    """
    live = live_class(declared)
    if live is None or value is None:
        return value
    found = as_live(value, live)
    if not isinstance(found, live):
        found = as_live(structured(value, content_type), live)
    if isinstance(found, live):
        return found
    raise InvalidArgumentError(
        f"{what} is no {live.__module__.partition('.')[0]} {live.__name__}",
        "Ask for the type that was stored, or for a list.",
    )


def parsed(value: object) -> object:
    """Return text that is JSON as its value, an array or a frame as lists; all else as it is."""
    if not isinstance(value, str | bytes):
        return plain_rows(value)
    try:
        return loads(value if isinstance(value, bytes) else _payload(value))
    except ValueError:
        return value


def structured(value: object, content_type: str | None = None) -> object:
    """Return what `parsed` does, and of text that is NDJSON, CSV or TSV its rows."""
    found = parsed(value)
    if isinstance(found, list):
        return cast("object", found)
    rows = _rows_of(value, content_type)  # also where it is JSON: one line of NDJSON is
    return found if rows is None else rows


def _rows_of(value: object, content_type: str | None) -> list[object] | None:
    return rows_of_text(value, content_type) if isinstance(value, str | bytes) else None


def fit(
    adapter: "TypeAdapter[Any] | StoredValidator", candidates: Iterable[object], what: str
) -> object:
    """Return the first candidate that validates.

    Raises:
        InvalidArgumentError: None does. The message quotes no value.
    """
    from pydantic import ValidationError

    first: ValidationError | None = None
    for candidate in candidates:
        try:
            return adapter.validate_python(candidate)
        except ValidationError as error:
            first = first or error
    if first is None:
        raise ValueError("there was no candidate")
    raise misfit(first, what) from None


def misfit(error: "ValidationError", what: str) -> InvalidArgumentError:
    """Return an error of pydantic's as one that quotes nothing of the value.

    Args:
        error: What validation raised; its first problem is told.
        what: What the message calls the value.

    >>> from pydantic import TypeAdapter, ValidationError
    >>> try:
    ...     TypeAdapter(dict[str, int]).validate_python({"pin": ["a secret"]})
    ... except ValidationError as error:
    ...     print(misfit(error, "the argument"))
    the argument['pin'] does not fit its type: Input should be a valid integer
    """
    worst = error.errors(include_input=False, include_url=False, include_context=False)[0]
    where = "".join(f"[{shown(part)}]" for part in worst["loc"][:_PLACE_PARTS])
    more = "…" if len(worst["loc"]) > _PLACE_PARTS else ""
    return InvalidArgumentError(
        f"{what}{where}{more} does not fit its type: {_why(worst['type'], worst['msg'])}",
        "Pass a value, or a pointer to one, of the declared type.",
    )


def _is_already(value: object, declared: object) -> bool:
    """Return whether a value that was just decoded is what was asked for, without a copy."""
    if isinstance(declared, type) and type(value) is declared:
        return declared not in (str, bytes)
    origin, args = get_origin(declared), get_args(declared)
    if origin is dict and type(value) is dict:
        return args in _ANY_OBJECT
    if origin is list and type(value) is list:
        items = cast("list[object]", value)
        if args[0] is dict or (get_origin(args[0]) is dict and get_args(args[0]) in _ANY_OBJECT):
            return countOf(map(type, items), dict) == len(items)
        return args[0] in (Any, object)
    return False


def _why(kind: str, message: str) -> str:
    """Return what is wrong, in pydantic's words unless they may be of the value."""
    from pydantic_core.core_schema import ErrorType

    is_own = kind not in get_args(ErrorType)
    words = kind.replace("_", " ") if is_own or kind in _QUOTING else message
    return words if len(words) <= _WHY_CHARS else f"{words[:_WHY_CHARS]}…"


def _bare(declared: object) -> object:
    """Return a type without its annotations and aliases, and without None as an alternative."""
    alias: Any = get_origin(declared) or declared
    if type(alias).__name__ == "TypeAliasType":  # of a `type` statement; numpy's NDArray is one
        return _bare(alias.__value__)
    if get_origin(declared) is Annotated:
        return _bare(get_args(declared)[0])
    if get_origin(declared) in (Union, types.UnionType):
        others = [part for part in get_args(declared) if part is not type(None)]
        if len(others) == 1:
            return _bare(others[0])
    return declared


def _payload(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return encode(value).whole()


def as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return _payload(value).decode("utf-8", "surrogatepass")
    except (UnicodeDecodeError, UnencodableValueError):
        raise InvalidArgumentError(
            "the value is binary and cannot be read as text",
            "Pass the pointer to a tool that takes bytes.",
        ) from None
