"""The standard `dataclass`, but what it writes into a class is written when it is first used."""

import dataclasses
import threading
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_origin

__all__ = ["dataclass"]

_standard: Any = dataclasses.dataclass
_lock = threading.RLock()


def _dataclass(**options: bool) -> Callable[[type], type]:
    # `dataclasses` compiles up to eight functions for each class, which was two thirds of
    # `import coatcheck`; a process then calls few of them, and most often `__init__` alone. So a
    # class gets its slots, as those cannot come later, and whoever touches the rest has it
    # written: `__init__` by us, which is quick, all others by `dataclasses`. Takes slots=True,
    # and with it frozen, kw_only and eq; each field is a parameter.
    names = ["__init__", "__repr__", "__match_args__"]
    names += ["__dataclass_fields__", "__dataclass_params__"]
    if options.get("eq", True):
        names += ["__eq__", *(["__hash__"] if options.get("frozen") else [])]
    if options.get("frozen"):
        names += ["__setattr__", "__delattr__", "__getstate__", "__setstate__"]

    def decorate(plain: type) -> type:
        fields = (*_fields(plain),)
        left_out = {"__dict__", "__weakref__", *fields}
        inside = {name: each for name, each in vars(plain).items() if name not in left_out}
        inside |= {"__slots__": fields, "__qualname__": plain.__qualname__}
        unwritten = {name: _Unwritten(plain, options) for name in names}
        return type(plain)(plain.__name__, plain.__bases__, {**unwritten, **inside})

    return decorate


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = _dataclass


class _Unwritten:
    """Stands where something will be written, and has it written when it is asked for."""

    def __init__(self, plain: type, options: Mapping[str, bool]) -> None:
        self._plain = plain
        self._options = options

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = owner
        self._name = name

    def __get__(self, instance: object, owner: type) -> object:
        with _lock:
            if vars(self._owner)[self._name] is self:
                self._write()
        written = vars(self._owner)[self._name]
        return written.__get__(instance, owner) if hasattr(written, "__get__") else written

    def _write(self) -> None:
        written: Mapping[str, Any]
        if self._name == "__init__":
            written = {"__init__": _init(self._plain, self._options)}
        else:
            written = _standard(**self._options)(self._plain).__dict__
        for name, each in [*vars(self._owner).items()]:
            if isinstance(each, _Unwritten) and name in written:
                setattr(self._owner, name, written[name])


class _Factory:
    """The default of a parameter whose value is made anew each time."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _init(plain: type, options: Mapping[str, bool]) -> Callable[..., None]:
    """Return the `__init__` that `dataclasses` would write."""
    fields = _fields(plain)
    defaults = {name: each for name, each in vars(plain).items() if name in fields}
    factories: dict[str, Any] = {}
    named = dict.fromkeys(fields, options.get("kw_only", False))
    for name, each in defaults.items():
        if isinstance(each, dataclasses.Field):
            field: Any = defaults[name]
            defaults[name] = field.default
            if field.default_factory is not MISSING:
                factories[name], defaults[name] = field.default_factory, _FACTORY
            if field.kw_only is not MISSING:
                named[name] = field.kw_only
    put = "PUT(self, {0!r}, {1})" if options.get("frozen") else "self.{0} = {1}"
    made = "FACTORIES[{0!r}]() if {0} is FACTORY else {0}"
    lines = [put.format(each, made.format(each) if each in factories else each) for each in fields]
    if hasattr(plain, "__post_init__"):
        lines.append("self.__post_init__()")
    by_place = [name for name in fields if not named[name]]
    by_name = [name for name in fields if named[name]]
    head = ", ".join(["self", *by_place, *(["*"] if by_name else []), *by_name])
    scope: dict[str, Any] = {"__name__": plain.__module__, "PUT": object.__setattr__}
    scope |= {"FACTORIES": factories, "FACTORY": _FACTORY}
    exec(f"def __init__({head}):\n " + "\n ".join(lines), scope)  # noqa: S102 - of names of fields
    init: Any = scope["__init__"]
    given = {name: each for name, each in defaults.items() if each is not MISSING}
    init.__defaults__ = tuple(given[name] for name in by_place if name in given)
    init.__kwdefaults__ = {name: given[name] for name in by_name if name in given}
    init.__annotations__ = {**fields, "return": None}
    init.__qualname__ = f"{plain.__qualname__}.__init__"
    return cast("Callable[..., None]", init)


def _fields(plain: type) -> dict[str, Any]:
    """Return the annotations of the fields of a class, by their names."""
    annotations: dict[str, Any] = plain.__annotations__
    return {name: each for name, each in annotations.items() if get_origin(each) is not ClassVar}
