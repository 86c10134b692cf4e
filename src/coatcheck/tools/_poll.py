"""`pollResult`: what became of work in the background."""

from ..bank import Bank, Work
from ..content import dumps, visible
from ..errors import InvalidArgumentError, shown
from ._noted import journaled
from ._tool import Arguments, Tool, tool

_LONGEST_WAIT_MS = 30_000
_HINTS = {
    "not-found": "Use a handle exactly as it was shown.",
    "expired": "Call the tool again.",
}


def poll_tools(bank: Bank) -> list[Tool]:
    """Return the tool that tells what became of a mirrored tool's background work.

    Its reply is JSON with a ``status``: ``done`` with the ``result``, ``error`` with the
    message, ``pending`` with the wait that was applied, ``expired`` or ``not-found`` with a hint.
    """

    async def poll_result(arguments: Arguments) -> str:
        wait_ms = arguments.get("waitMs", 0)
        if wait_ms < 0:
            raise InvalidArgumentError(
                f"waitMs must be 0 or more, got {shown(wait_ms)}",
                f"Give 0 to {_LONGEST_WAIT_MS:,} milliseconds.",
            )
        wait_ms = min(wait_ms, _LONGEST_WAIT_MS)
        work = await bank.handles.poll(arguments["handle"], wait_ms)
        reply = dumps({"status": work.status, **_facts(work, wait_ms)})
        return visible(reply.decode("utf-8", "surrogatepass"))

    tools = [
        tool(
            "pollResult",
            f"Get what a handle's work returned; wait up to waitMs ({_LONGEST_WAIT_MS} at most).",
            {"handle": "string", "waitMs": "integer"},
            ("handle",),
            poll_result,
        )
    ]
    return journaled(bank, tools)


def _facts(work: Work, wait_ms: int) -> dict[str, object]:
    if work.status == "done":
        return {"result": work.result}
    if work.status == "error":
        return {"error": work.error}
    if work.status == "pending":
        return {"waitMs": wait_ms}
    return {"hint": _HINTS[work.status]}
