"""The parameters of a mirrored function: which take pointers, and as what they arrive."""

import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from types import SimpleNamespace, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from ..bank import Bank, StoredValidator, as_found, as_text, fit, fit_stored, parsed, structured
from ..errors import shown
from ..records import dataclass, names_pointer
from ._schema import POINTER_PATTERN, POINTER_SCHEMA, is_verbatim, marked_node, takes_structure
from ._slots import Argument, Slot, fetch_all

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler, TypeAdapter
    from pydantic_core import CoreSchema

T = TypeVar("T")

_SCALARS = (str, int, float, bool)


class _Verbatim:
    """Marks a parameter that takes pointers as the text they are, in its JSON schema too."""

    def __get_pydantic_json_schema__(
        self, core_schema: "CoreSchema", handler: "GetJsonSchemaHandler"
    ) -> dict[str, Any]:
        return marked_node(handler(core_schema))


Verbatim = Annotated[T, _Verbatim()]
"""``Verbatim[str]``: a pointer given to this parameter is not resolved."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its declared type, and what a model is told of it."""

    declared: object
    advertised: object
    exact: type | None
    """The type whose own values need no validation."""
    adapter: "TypeAdapter[Any] | None"
    stored: StoredValidator | None
    """Validates what a pointer stands for, where the adapter does what a model writes."""
    verbatim: bool = False

    def is_settled(self, value: object) -> bool:
        """Return whether `value` can go to the function as it is."""
        if type(value) is not self.exact:
            return self.verbatim
        return type(value) is not str or not names_pointer(value)

    def arrived(self, argument: Argument, what: str) -> object:
        """Return an argument, its pointers replaced, as the declared type.

        Raises:
            InvalidArgumentError: It does not fit.
        """
        if argument.is_whole:
            found, content_type = argument.slots[0].found, argument.slots[0].content_type
            if self.adapter is None or self.stored is None:
                return as_found(found, self.declared, what, content_type)
            return fit_stored(
                self.adapter, self.stored, found, self.declared, what, content_type=content_type
            )
        if self.adapter is None:
            return as_found(argument.value, self.declared, what)
        if not argument.slots:
            return fit(self.adapter, (argument.value,), what)
        return fit(self.adapter, argument.fillings(*_READINGS), what)


_READINGS: tuple[Callable[[Slot], object], ...] = (
    lambda slot: slot.found,
    lambda slot: parsed(slot.found),
    lambda slot: as_text(slot.found),
    lambda slot: structured(slot.found, slot.content_type),
)
"""What pointers within an argument may mean, best first; the same of all of them."""


def with_verbatim_marks(
    schema: Mapping[str, Any], function: Callable[..., object]
) -> Mapping[str, Any]:
    """Return a function's JSON schema with its `Verbatim` parameters marked.

    For a framework whose schemas have no marks, as it takes them off first.

    Args:
        schema: Of the arguments, an object; it is not changed.
        function: Whose parameters they are.
    """
    names = {name for name, hint in _hints(function).items() if _declares_verbatim(hint)}
    nodes: Mapping[str, object] = schema.get("properties", {})
    marked = {
        name: marked_node(cast("Mapping[str, Any]", node))
        for name, node in nodes.items()
        if name in names and isinstance(node, Mapping)
        if not is_verbatim(cast("object", node), schema)
    }
    return {**schema, "properties": {**nodes, **marked}} if marked else schema


class Parameters:
    """The parameters of one function.

    Args:
        function: Any callable; its own signature is not changed.
        inject: Values for parameters of these types, which a model never sees.

    Raises:
        TypeError: It is a built-in whose signature Python does not know.
    """

    def __init__(self, function: Callable[..., object], inject: Mapping[type, object]) -> None:
        try:
            self._signature = inspect.signature(function)
        except ValueError as error:
            message = f"{function!r} has no signature to mirror; wrap it in a function of your own"
            raise TypeError(message) from error
        hints = _hints(function)
        self._injected = {
            name: inject[cast("type", hints[name])]
            for name in self._signature.parameters
            if _is_type_in(hints.get(name), inject)
        }
        self._parameters = {
            name: _parameter(hints.get(name, _declared_in(parameter)))
            for name, parameter in self._signature.parameters.items()
            if name not in self._injected
        }
        self.signature = inspect.Signature(
            [
                parameter.replace(annotation=self._parameters[name].advertised)
                for name, parameter in self._signature.parameters.items()
                if name in self._parameters
            ],
            return_annotation=Any,
        )
        self._positional = tuple(
            self._parameters[name]
            for name, parameter in self.signature.parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        )

        # A positional-only name is free for one of `**kwargs`.
        self._named = {
            name: self._parameters[name]
            for name, parameter in self.signature.parameters.items()
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        }

    @property
    def annotations(self) -> dict[str, object]:
        """What a model is told, by name, as in ``__annotations__``."""
        shown = {name: parameter.advertised for name, parameter in self._parameters.items()}
        return {**shown, "return": Any}

    def are_settled(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> bool:
        """Return whether a call needs neither look-up nor validation: the quick path."""
        if self._injected or len(args) > len(self._positional):
            return False
        if not args and not kwargs:
            return True
        for parameter, value in zip(self._positional, args, strict=False):
            if not parameter.is_settled(value):
                return False
        for name, value in kwargs.items():
            named = self._named.get(name)
            if named is None or not named.is_settled(value):
                return False
        return True

    def bound(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> "BoundCall":
        """Return a call to be resolved.

        Raises:
            TypeError: The arguments do not fit the signature.
        """
        bound = self.signature.bind(*args, **kwargs)
        call = BoundCall(inspect.BoundArguments(self._signature, dict(self._injected)))  # pyright: ignore[reportArgumentType]
        for name, value in bound.arguments.items():
            call.take(name, self.signature.parameters[name].kind, self._parameters[name], value)
        call.fill_up(self._injected)
        return call


@dataclass(frozen=True, slots=True)
class _Taken:
    """One argument, and where it goes once it has arrived."""

    name: str
    parameter: Parameter
    argument: Argument
    container: Any
    key: object


class BoundCall:
    """One call whose arguments may hold pointers."""

    def __init__(self, bound: inspect.BoundArguments) -> None:
        self._bound = bound
        self._taken: list[_Taken] = []

    def take(self, name: str, kind: object, parameter: Parameter, value: Any) -> None:
        """Take one argument; the starred ones hold several."""
        arguments = self._bound.arguments
        items: list[tuple[str, Any, object, object]]
        if kind is inspect.Parameter.VAR_POSITIONAL:
            several: list[object] = [None] * len(value)
            arguments[name] = several
            items = [(f"{name}[{at}]", several, at, item) for at, item in enumerate(value)]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            named: dict[str, object] = {}
            arguments[name] = named
            items = [(key, named, key, item) for key, item in value.items()]
        else:
            items = [(name, arguments, name, value)]
        for label, container, key, item in items:
            if parameter.verbatim:
                container[key] = item
            else:
                self._taken.append(_Taken(label, parameter, Argument(item), container, key))

    def fill_up(self, injected: Collection[str]) -> None:
        """Give defaults to what stands left out before an injected positional-only parameter."""
        waiting: list[inspect.Parameter] = []
        for name, parameter in self._bound.signature.parameters.items():
            if parameter.kind is not inspect.Parameter.POSITIONAL_ONLY:
                break
            if name in injected:
                self._bound.arguments.update({each.name: each.default for each in waiting})
                waiting.clear()
            elif name not in self._bound.arguments:
                waiting.append(parameter)

    @property
    def has_pointers(self) -> bool:
        """Whether any argument names an artifact."""
        return any(taken.argument.slots for taken in self._taken)

    async def fetch(self, bank: Bank) -> None:
        """Fetch what the pointers stand for. Raises as `fetch_all`."""
        await fetch_all(bank, [taken.argument for taken in self._taken if taken.argument.slots])

    def arrived(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments as their declared types.

        Raises:
            InvalidArgumentError: One does not fit. The function was not called.
        """
        for taken in self._taken:
            what = f"argument {shown(taken.name)}"
            taken.container[taken.key] = taken.parameter.arrived(taken.argument, what)
        return self._bound.args, self._bound.kwargs


def _hints(function: Callable[..., object]) -> dict[str, object]:
    target = function if inspect.isroutine(function) else getattr(function, "func", function)
    if not inspect.isroutine(target):
        target = type(target).__call__
    annotations = cast("dict[str, object]", getattr(target, "__annotations__", None) or {})
    target = inspect.unwrap(cast("Callable[..., object]", target))
    hints: dict[str, object] = {}
    for name, annotation in annotations.items():
        alone = SimpleNamespace(
            __annotations__={name: annotation},
            __globals__=getattr(target, "__globals__", {}),
            __type_params__=getattr(target, "__type_params__", ()),
        )
        # One that does not resolve says nothing, and takes nothing from its neighbours.
        with suppress(Exception):
            hints.update(get_type_hints(alone, include_extras=True))
    return hints


def _declared_in(parameter: inspect.Parameter) -> object:
    return Any if parameter.annotation is inspect.Parameter.empty else parameter.annotation


def _is_type_in(hint: object, inject: Mapping[type, object]) -> bool:
    return isinstance(hint, type) and hint in inject


def _parameter(declared: object) -> Parameter:
    from pydantic import TypeAdapter

    if _declares_verbatim(declared):
        return Parameter(declared, declared, None, None, None, verbatim=True)
    if declared is Any or declared is object or isinstance(declared, str):
        return Parameter(Any, declared, None, None, None)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", declared))
        schema = adapter.json_schema()
        advertised = _advertised(declared, schema)
        stored = StoredValidator(adapter)
    except Exception:  # noqa: BLE001 - pydantic, and what a type does in its hooks, raise anything
        return Parameter(declared, _foreign(), None, None, None)
    exact = next((scalar for scalar in _SCALARS if declared is scalar), None)
    return Parameter(declared, advertised, exact, adapter, stored)


def _declares_verbatim(declared: object) -> bool:
    """Return whether a type is marked, or one of several that it may be: `None` is another."""
    if get_origin(declared) in {Union, UnionType}:
        return any(map(_declares_verbatim, get_args(declared)))
    return get_origin(declared) is Annotated and any(
        isinstance(mark, _Verbatim) for mark in get_args(declared)
    )


def _advertised(declared: object, schema: Mapping[str, Any]) -> object:
    """Return an annotation that shows `declared`, and hands on whatever comes.

    Validation is ours, once the pointers are resolved; a framework's own would refuse them.
    """
    from pydantic import Field, WrapValidator

    if declared is str:
        return declared
    passing = WrapValidator(_pass_through)
    if not takes_structure(schema, schema):
        return Annotated[cast("Any", declared), passing]
    pointer = Annotated[str, Field(pattern=POINTER_PATTERN)]
    either: Any = Union[declared, pointer]  # noqa: UP007 - built at run time
    description = schema.get("description") if get_origin(declared) is Annotated else None
    if description is None:
        return Annotated[either, passing]
    return Annotated[either, Field(description=description), passing]


def _foreign() -> object:
    """Return the annotation for a type that pydantic has no schema for."""
    from pydantic import WithJsonSchema

    return Annotated[Any, WithJsonSchema({"anyOf": [{}, dict(POINTER_SCHEMA)]})]


def _pass_through(value: object, _validate: object) -> object:
    return value
