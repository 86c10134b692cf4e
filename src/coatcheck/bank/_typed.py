"""What a stored value becomes where a type is declared: in `get`, and for a tool's parameter."""

import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Union, cast, get_args, get_origin

from ..content import dumps, loads
from ..errors import InvalidArgumentError, shown

if TYPE_CHECKING:
    from pydantic import TypeAdapter

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


def as_declared(value: object, declared: object) -> object:
    """Return a stored value as a declared type.

    Raises:
        InvalidArgumentError: It does not fit.
    """
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", declared))
    return fit(adapter, readings(value, declared), "the value")


def readings(value: object, declared: object) -> Iterator[object]:
    """Yield what a stored value may mean for a declared type, best first.

    `str` takes the payload's text unparsed, `bytes` the payload. `Any` takes what was put.
    All else takes the payload parsed by its format, then what was put, then the text.
    """
    bare = _bare(declared)
    if bare is bytes:
        yield _payload(value)
    elif bare is str:
        yield as_text(value)
    elif bare in (Any, object, None):
        yield value
    else:
        yield parsed(value)
        yield value
        yield as_text(value)


def parsed(value: object) -> object:
    """Return text that is JSON as its value; anything else as it is."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return loads(value if isinstance(value, bytes) else _payload(value))
    except ValueError:
        return value


def fit(adapter: "TypeAdapter[Any]", candidates: Iterable[object], what: str) -> object:
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
    worst = first.errors(include_input=False, include_url=False, include_context=False)[0]
    where = "".join(f"[{shown(part)}]" for part in worst["loc"][:_PLACE_PARTS])
    more = "…" if len(worst["loc"]) > _PLACE_PARTS else ""
    raise InvalidArgumentError(
        f"{what}{where}{more} does not fit its type: {_why(worst['type'], worst['msg'])}",
        "Pass a value, or a pointer to one, of the declared type.",
    ) from None


def _why(kind: str, message: str) -> str:
    """Return what is wrong, in pydantic's words unless they may be of the value."""
    from pydantic_core.core_schema import ErrorType

    is_own = kind not in get_args(ErrorType)
    words = kind.replace("_", " ") if is_own or kind in _QUOTING else message
    return words if len(words) <= _WHY_CHARS else f"{words[:_WHY_CHARS]}…"


def _bare(declared: object) -> object:
    """Return a type without its annotations, and without None as an alternative."""
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
    return dumps(value)


def as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return _payload(value).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise InvalidArgumentError(
            "the value is binary and cannot be read as text",
            "Pass the pointer to a tool that takes bytes.",
        ) from None
