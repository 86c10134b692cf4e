"""Classes whose parts are written later are what `dataclasses` makes at once."""

import copy
import dataclasses
import inspect
import pickle
import pkgutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, field
from importlib import import_module
from typing import Any, ClassVar, cast

import pytest

from coatcheck.records import Glimpse, Match, Page, dataclass


class Point:
    """Where something is."""

    SCALE: ClassVar[int] = 2

    x: int
    y: int = 1
    names: list[str] = field(default_factory=list[str])
    hidden: str = field(default="h", repr=False)
    last: int = field(default=9, kw_only=True)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")

    @property
    def scaled(self) -> int:
        return self.x * self.SCALE


OPTIONS = [
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "kw_only": True},
    {"slots": True},
    {"slots": True, "kw_only": True},
    {"slots": True, "eq": False},
]


def made(decorator: Callable[..., Any], options: dict[str, bool]) -> Any:
    left_out = {"__dict__", "__weakref__"}
    inside = {name: each for name, each in vars(Point).items() if name not in left_out}
    return decorator(**options)(type("Point", (), inside))


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_class_is_what_the_standard_library_makes(
    options: dict[str, bool], is_told_first: bool
) -> None:
    ours, standard = made(dataclass, options), made(dataclasses.dataclass, options)
    if is_told_first:
        assert str(dataclasses.fields(ours)) == str(dataclasses.fields(standard))

    one, other = ours(x=3, last=4), standard(x=3, last=4)

    assert repr(one) == repr(other)
    assert (one == ours(x=3, last=4)) is (other == standard(x=3, last=4))
    assert one != ours(x=4, last=4)
    assert one != other
    assert one.scaled == other.scaled == 6
    assert one.names is not ours(x=3).names
    assert dataclasses.asdict(one) == dataclasses.asdict(other)
    assert dataclasses.replace(one, x=5).x == 5
    assert str(dataclasses.fields(ours)) == str(dataclasses.fields(standard))
    assert str(inspect.signature(ours)) == str(inspect.signature(standard))
    assert inspect.get_annotations(ours.__init__) == inspect.get_annotations(standard.__init__)
    assert ours.__init__.__qualname__ == standard.__init__.__qualname__
    for name in ("__dataclass_params__", "__match_args__", "__slots__", "__doc__", "__module__"):
        assert str(getattr(ours, name)) == str(getattr(standard, name))
    # Python 3.11.2 leaves a descriptor there of the class that had no slots.
    assert {*vars(ours)} == {*vars(standard)} - {"__weakref__"}


@pytest.mark.parametrize("options", OPTIONS)
def test_it_refuses_what_the_standard_library_refuses(options: dict[str, bool]) -> None:
    ours, standard = made(dataclass, options), made(dataclasses.dataclass, options)

    def refusal(act: Callable[[Any], object], kind: Any) -> str:
        with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
            act(kind)
        return f"{caught.type}: {caught.value}"

    acts: list[Callable[[Any], object]] = [
        lambda kind: kind(),
        lambda kind: kind(1, 2, [], "h", 9),
        lambda kind: kind(x=1, other=2),
        lambda kind: kind(x=-1),
        lambda kind: kind.x.y,
        lambda kind: kind(x=1) < kind(x=2),
    ]
    if options.get("frozen"):
        acts += [_change, _remove, _hash]
    for act in acts:
        assert refusal(act, ours) == refusal(act, standard)


def _change(kind: Any) -> None:
    kind(x=1).x = 2


def _remove(kind: Any) -> None:
    del kind(x=1).x


def _hash(kind: Any) -> int:
    return hash(kind(x=1))  # it holds a list


def test_a_record_cannot_be_changed_and_hashes_by_its_fields() -> None:
    match = Match(1, 2, 3, "snippet")

    with pytest.raises(FrozenInstanceError):
        match.offset = 2  # type: ignore[misc]

    assert {match: 1}[Match(1, 2, 3, "snippet")] == 1
    assert copy.deepcopy(match) == match


def test_a_record_is_read_by_a_process_that_has_made_none() -> None:
    written = pickle.dumps(Glimpse("3 lines", {"lines": 3}))
    code = "import pickle, sys; print(repr(pickle.loads(sys.stdin.buffer.read())))"

    done = subprocess.run(
        [sys.executable, "-c", code], input=written, capture_output=True, check=True
    )

    assert done.stdout == b"Glimpse(text='3 lines', facts={'lines': 3})\n"


def test_a_class_derived_from_one_has_what_that_has() -> None:
    base = made(dataclass, {"frozen": True, "slots": True})

    def init(self: Any) -> None:
        cast("Any", super(named, self)).__init__(7)

    named: Any = type("Named", (base,), {"__init__": init})
    wide = dataclasses.make_dataclass("Wide", [("z", int, 0)], bases=(base,), frozen=True)

    assert named().x == 7
    assert named() == named()
    assert repr(wide(2)) == "Wide(x=2, y=1, names=[], last=9, z=0)"


def _used(kind: Any, start: threading.Barrier) -> str:
    start.wait()
    return f"{kind(1)} {kind(1) == kind(1)} {dataclasses.fields(kind)[0].name}"


def test_threads_that_use_a_class_first_at_once_all_get_it_whole() -> None:
    for _ in range(50):
        ours = made(dataclass, {"frozen": True, "slots": True})
        start = threading.Barrier(4)
        with ThreadPoolExecutor(4) as threads:
            seen = [*threads.map(_used, [ours] * 4, [start] * 4)]

        assert seen == ["Point(x=1, y=1, names=[], last=9) True x"] * 4


def test_who_comes_while_a_method_is_written_gets_what_was_written() -> None:
    ours = made(dataclass, {"frozen": True, "slots": True})
    unwritten = cast("Any", vars(ours)["__init__"])
    written = ours.__init__

    assert unwritten.__get__(None, ours) is written is vars(ours)["__init__"]


def records() -> Iterator[Any]:
    for layer in ("records", "stores", "content", "bank", "mirror", "tools"):
        package = import_module(f"coatcheck.{layer}")
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            for each in vars(import_module(module.name)).values():
                is_own = isinstance(each, type) and each.__module__ == module.name
                if is_own and dataclasses.is_dataclass(each):
                    yield each


def test_the_parameters_of_all_records_are_those_of_their_fields() -> None:
    found = [*records()]

    assert Page in found
    assert len(found) > 70
    for each in found:
        like = dataclasses.make_dataclass(
            each.__name__, [(one.name, one.type, one) for one in dataclasses.fields(each)]
        )
        assert str(inspect.signature(each)) == str(inspect.signature(like)), each
