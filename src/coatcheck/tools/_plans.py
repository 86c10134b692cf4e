"""`store_plan` and `get_plan`: plans whose actions name pointers, kept whole under one."""

from collections.abc import Awaitable, Callable, Iterator
from typing import cast

from ..bank import Bank
from ..content import dumps, visible
from ..errors import InvalidArgumentError, UnknownPointerError, shown
from ..records import Pointer, names_pointer
from ._noted import journaled
from ._retrieve import page_reply
from ._tool import Arguments, Tool, tool

_KIND = "plan"
_Work = Callable[[Arguments], Awaitable[str]]
_MOST_ACTIONS = 1_000


def plan_tools(bank: Bank) -> list[Tool]:
    """Return the two tools by which one agent hands a plan to another.

    A plan is a title and actions, each a JSON object as its host wants them. Pointers in it stay
    text: what stands behind one is looked up where the action is run, by the mirrored tool that
    gets it. So a plan is short, whatever its actions work on. Each pointer is tried when the plan
    is stored, and one that leads nowhere refuses the plan.

    >>> import asyncio, json
    >>> from coatcheck import open_bank
    >>> async def example() -> object:
    ...     async with open_bank("memory:") as bank:
    ...         ids = await bank.put(["p-1", "p-2"])
    ...         store_plan, _ = plan_tools(bank)
    ...         action = {"name": "raise", "products": ids.pointer, "percent": 10}
    ...         reply = await store_plan.call({"title": "Raise", "actions": [action]})
    ...         plan = await bank.get(json.loads(reply)["planId"])
    ...         return plan["actions"][0]["products"] == ids.pointer
    >>> asyncio.run(example())
    True
    """

    async def store_plan(arguments: Arguments) -> str:
        actions = arguments["actions"]
        if not 0 < len(actions) <= _MOST_ACTIONS:
            raise InvalidArgumentError(
                f"a plan has 1 to {_MOST_ACTIONS:,} actions, got {len(actions)}",
                "Give each action as one object.",
            )
        for text in dict.fromkeys(_pointers(actions)):
            await _try(bank, text)
        plan = {"title": arguments["title"], "actions": actions}
        artifact = await bank.put(plan, kind=_KIND)
        reply = {"planId": artifact.pointer, "title": arguments["title"], "actions": len(actions)}
        return visible(dumps(reply).decode("utf-8", "surrogatepass"))

    async def get_plan(arguments: Arguments) -> str:
        artifact = await bank.find(arguments["planId"])
        if artifact is None or artifact.kind != _KIND:
            if artifact is None:
                raise UnknownPointerError(arguments["planId"])
            raise InvalidArgumentError(
                f"{shown(arguments['planId'])} is no plan", "Give the planId that was shown."
            )
        page = await bank.read(artifact.pointer)
        return page_reply(page) if page.has_more else visible(str(page.content))

    return journaled(bank, _defined(store_plan, get_plan))


def _defined(store_plan: _Work, get_plan: _Work) -> list[Tool]:
    return [
        tool(
            "store_plan",
            "Keep a plan for whoever carries it out. Its actions name large values by their "
            "pointers, which are looked up when an action runs. Returns its planId.",
            {"title": "string", "actions": {"type": "array", "items": {"type": "object"}}},
            ("title", "actions"),
            store_plan,
        ),
        tool(
            "get_plan",
            "Get the title and actions of a plan. Pass pointers in it on as they are.",
            {"planId": "string"},
            ("planId",),
            get_plan,
        ),
    ]


async def _try(bank: Bank, text: str) -> None:
    """Pass a pointer that leads somewhere, and text that is none.

    Raises:
        PointerError: It leads nowhere, or its selector picks nothing.
    """
    pointer = Pointer.parse(text)
    is_known = pointer.prefix == "art" or await bank.knows_prefix(pointer.prefix)
    if is_known or await bank.find(text) is not None:
        await bank.read(pointer, limit=1, unit="bytes")


def _pointers(value: object) -> Iterator[str]:
    """Yield the texts in a value that are pointers, or were meant as such."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            left.extend(reversed(cast("dict[str, object]", each).values()))
        elif isinstance(each, list):
            left.extend(reversed(cast("list[object]", each)))
        elif isinstance(each, str) and names_pointer(each):
            yield each
