"""The tools of a step: the caller's, mirrored on the run's bank, then ours."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import Any, cast

from ..bank import Bank, in_daemon_thread
from ..content import dumps, encoded_size, loads, plain_rows, visible
from ..errors import CoatcheckError, InvalidArgumentError, UnencodableValueError, shown
from ..mirror import Mirror, definition
from ..records import OWN_TOOLS, Envelope, Limits
from ..tools import Failure, Tool, as_failure, poll_tools
from ._context import RunContext

FINISH = "finish_step"

_NO_OUTPUT = "The tool ran, and returned nothing."


@dataclass(frozen=True, slots=True)
class RunTool:
    """A function as a tool, with what a run should know of it.

    Args:
        function: As a plain function is: mirrored, parameters of type `RunContext` and `Bank`
            injected. A sync one runs in a thread.
        parallel: Whether it may run beside the other calls of a turn; else each call of it
            runs alone, after those before it and before those behind it.
        background: Whether a call starts its work and returns a handle at once, for `pollResult`,
            which the step then has too.

    >>> def deploy(version: str) -> str:
    ...     return f"deployed {version}"
    >>> RunTool(deploy, parallel=False).parallel
    False
    """

    function: Callable[..., object]
    parallel: bool = True
    background: bool = False


@dataclass(frozen=True, slots=True)
class FinishTool:
    """`finish_step` as a model is told of it."""

    parameters: Mapping[str, Any]
    name: str = FINISH
    description: str = "End the step with its result. It comes after all other calls of a turn."


Shown = Callable[[Mapping[str, Any] | str], Awaitable[object]]
"""Gives what to show of a call's result: the value, its `Envelope`, or a `Failure`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirroredStepTool(Tool):
    """A tool of the caller's, mirrored: its replies may be made to fit the turn."""

    shown: Shown


StepTool = Callable[..., object] | Tool | RunTool
"""What a caller may give a step: a function, or a tool that has its JSON schema.

A `Tool` is mirrored too: pointers among its arguments arrive as its schema says, and a large reply
is offloaded. Only those of `coatcheck.tools` are bounded, and pass as they are.
"""


def step_tools(
    given: Iterable[StepTool], context: RunContext, limits: Limits | None = None
) -> list[Tool]:
    """Return what the steps of a run may call, without `finish_step`: the caller's tools first.

    Each reply is text, failures included: no call raises, whatever a model writes.

    Args:
        given: The caller's tools. One with the name of one of ours stands in for it.
        context: Of the run.
        limits: When results are offloaded; None takes those of the bank.

    Raises:
        ValueError: Two have one name, or one is called `finish_step`.
        TypeError: One is no function, or has no signature that can be mirrored.
    """
    inject: Mapping[type, object] = {Bank: context.bank, RunContext: context}
    mirror = Mirror(context.bank, limits, inject=inject, own=["retrieve_context"])
    made = [_made(each, mirror) for each in given]
    if any(isinstance(each, RunTool) and each.background for each in given):
        made += _absent(made, poll_tools(context.bank))
    names = [tool.name for tool in made]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"two tools are called {twice[0]!r}")
    if FINISH in names:
        raise ValueError(f"{FINISH!r} is how a step ends: call the tool something else")
    return made + _absent(made, (tool for tool, _ in context.own_tools))


def chosen_tools(tools: Sequence[Tool], given: int, names: Iterable[str] | None) -> list[Tool]:
    """Return the tools of a step that is restricted to some of the caller's.

    Ours stay, and so do the caller's that stand in for one of them.

    Args:
        tools: As `step_tools` returns them.
        given: How many of them are the caller's.
        names: Those that are allowed; None allows all.
    """
    if names is None:
        return list(tools)
    allowed = frozenset(names)
    return [
        tool
        for at, tool in enumerate(tools)
        if at >= given or tool.name in allowed or tool.name in OWN_TOOLS
    ]


def not_found(name: str, tools: Iterable[Tool]) -> str:
    """Return the reply to a call of a tool that there is not."""
    names = ", ".join(tool.name for tool in tools)
    return str(
        Failure("not-found", f"the tool {shown(name)} was not found", f"The tools are: {names}.")
    )


def parsed_arguments(arguments: str | Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a call by name; none at all are no arguments.

    Raises:
        InvalidArgumentError: They are no JSON object.
    """
    given: object = arguments
    if isinstance(arguments, str):
        try:
            given = loads(arguments.encode("utf-8", "surrogatepass")) if arguments.strip() else None
        except ValueError:
            given = False
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(
            "the arguments are not a JSON object", "Pass the arguments by name, as one object."
        )
    return dict(cast("Mapping[str, Any]", given))


def _absent(standing: Sequence[Tool], ours: Iterable[Tool]) -> list[Tool]:
    names = {tool.name for tool in standing}
    return [tool for tool in ours if tool.name not in names]


def _made(given: StepTool, mirror: Mirror) -> Tool:
    if isinstance(given, Tool):
        return given if given.is_bounded else _mirrored_tool(given, mirror)
    tool = given if isinstance(given, RunTool) else RunTool(given)
    if not callable(tool.function):
        raise TypeError(f"a tool must be a function or Tool, got {type(tool.function).__name__}")
    function = _async_form(tool.function)
    call = mirror.background(function) if tool.background else mirror.wrap(function)
    described = definition(call)
    signature = inspect.signature(call)

    async def run(arguments: Mapping[str, Any]) -> object:
        try:
            signature.bind(**arguments)
        except TypeError as error:
            takes = ", ".join(signature.parameters) or "none"
            raise InvalidArgumentError(str(error), f"The arguments are: {takes}.") from error
        return await call(**arguments)

    shown = _showing(described["name"], run, mirror)
    return MirroredStepTool(
        described["name"],
        described["description"],
        described["parameters"],
        _replying(shown),
        parallel=tool.parallel,
        shown=shown,
    )


def _mirrored_tool(given: Tool, mirror: Mirror) -> Tool:
    async def run(arguments: Mapping[str, Any]) -> object:
        resolved = await mirror.resolve(arguments, given.parameters)
        return await mirror.offload(await given.call(resolved), given.name)

    shown = _showing(given.name, run, mirror)
    return MirroredStepTool(
        given.name,
        given.description,
        mirror.schema(given.parameters),
        _replying(shown),
        parallel=given.parallel,
        shown=shown,
    )


def _showing(
    name: str, run: Callable[[Mapping[str, Any]], Awaitable[object]], mirror: Mirror
) -> Shown:
    """Return a call that gives what to show of its result, whatever happens."""

    async def shown(arguments: Mapping[str, Any] | str) -> object:
        try:
            return await run(parsed_arguments(arguments))
        except CoatcheckError as error:
            return as_failure(error)
        except Exception as error:  # noqa: BLE001 - a tool may raise anything, and the run goes on
            said = f"{type(error).__name__}: {error}"
            if encoded_size(said) >= mirror.limits.inline_limit(name):
                # The journal knows of the call: it is told once a mirrored function has raised.
                return await mirror.offload_part(said, name, keyed=False, is_error=True)
            return Failure("tool-failed", said, "Try other arguments, or another tool.")

    return shown


def _replying(shown: Shown) -> Callable[[Mapping[str, Any] | str], Awaitable[str]]:
    async def call(arguments: Mapping[str, Any] | str) -> str:
        return as_text(await shown(arguments))

    return call


def _async_form(function: Callable[..., object]) -> Callable[..., object]:
    """Return a sync function as one that is awaited, and runs in a thread."""
    if (
        inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
        or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - an object whose calls are awaited
    ):
        return function

    async def run(*args: object, **kwargs: object) -> object:
        call = partial(copy_context().run, function, *args, **kwargs)
        result = await in_daemon_thread(call)
        return await cast("Awaitable[object]", result) if inspect.isawaitable(result) else result

    update_wrapper(run, function)
    run.__name__ = getattr(function, "__name__", type(function).__name__)
    return run


def as_text(value: object) -> str:
    """Return a result as a model reads it."""
    if value is None:
        return _NO_OUTPUT
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Envelope | Failure):
        return str(value)
    try:
        return visible(dumps(plain_rows(value)).decode("utf-8", "surrogatepass"))
    except UnencodableValueError:
        # Short, or the offloader would have cut it, and its repr is known to work.
        return visible(repr(value))
