"""The demo before a server of the user's own: what its results take, with the proxy and without."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import typer
from rich import box
from rich.console import RenderableType
from rich.table import Table

from ....records import OWN_TOOLS, dataclass
from ....tools import Tool
from ..._printable import one_line
from .._app import NOT_FOUND
from .._lines import human_size
from .._out import draw, write, write_json
from ._calls import harmless_calls, lines_to_try, parsed_call
from ._draw import draw_message
from ._policy import envelope_in
from ._proxied import Proxied, proxied
from ._tokens import TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """One call, and what a model is sent of its result."""

    tool: str
    arguments: dict[str, Any]
    shown: str
    size_bytes: int
    """Of the result without the proxy, its text in UTF-8."""
    tokens: int
    raw_tokens: int
    pointers: Sequence[str]


async def show_own_server(
    command: Sequence[str], calls: Sequence[str], options: Sequence[str], *, as_json: bool
) -> None:
    """Call tools of a server behind the proxy, and tell what that takes and would have taken.

    Args:
        command: What starts the server.
        calls: ``TOOL`` or ``TOOL={…}``; where there are none, tools are called that say that
            they only read, and of which all arguments are known.
        options: Of ``coatcheck proxy``.
        as_json: Whether one document is printed in place of all else.

    Raises:
        InvalidArgumentError: A call is none, or of a tool that there is not.
        ServerFailedError: The server failed.
        typer.Exit: There was nothing to call.
    """
    async with proxied(command, options, lambda _done, _total: None) as behind:
        wanted = [parsed_call(call, behind.listed) for call in calls]
        wanted = wanted or harmless_calls(behind.listed, command)
        counter = TokenCounter()
        called: list[Called] = []
        for tool, arguments in wanted:
            called.append(await _called(behind, counter, tool, arguments))
            if not as_json:
                call = {"name": tool, "arguments": arguments}
                draw_message({"role": "assistant", "calls": [call]})
                draw_message({"role": "tool", "content": called[-1].shown})
        own = [tool for tool in behind.tools if tool.name in OWN_TOOLS]
        if as_json:
            write_json(_wire(called, behind.tools, counter.schemas(own)))
        else:
            _draw(called, behind.tools, counter.schemas(own))
        lines = [] if called or as_json else lines_to_try(behind.listed, command)
    if not called:
        write("".join(f"  {one_line(line)}\n" for line in lines))
        raise typer.Exit(NOT_FOUND)


async def _called(
    behind: Proxied, counter: TokenCounter, tool: str, arguments: dict[str, Any]
) -> Called:
    behind.meta.clear()
    text = await behind.call(tool, arguments)
    raw = text
    for artifact in behind.artifacts:
        pointer = str(artifact["pointer"])
        payload = await behind.payload(pointer, int(artifact["sizeBytes"]))
        whole = payload if isinstance(payload, str) else b64encode(payload).decode()
        raw = "\n".join(
            whole if (found := envelope_in(line)) and found["pointer"] == pointer else line
            for line in raw.split("\n")
        )
    return Called(
        tool=tool,
        arguments=arguments,
        shown=text,
        size_bytes=len(raw.encode("utf-8", "surrogatepass")),
        tokens=counter.message({"content": text}),
        raw_tokens=counter.message({"content": raw}),
        pointers=[str(artifact["pointer"]) for artifact in behind.artifacts],
    )


def _draw(called: Sequence[Called], tools: Sequence[Tool], own_tokens: int) -> None:
    names = ", ".join(one_line(tool.name) for tool in tools)
    if not called:
        draw(
            f"Behind the proxy: {names}.",
            "None of them says that it only reads and needs no arguments but those that are known, "
            "so none was called. Say which, with --call as often as you like:",
        )
        return
    remark = (
        "Each result is sent again with every later call of the model, so what was kept out "
        "counts that often."
        if any(call.pointers for call in called)
        else "Nothing here reaches the inline limit, so all was passed on as it is."
    )
    draw(
        _table(called),
        remark,
        f"The definition of retrieve_context takes {own_tokens:,} tokens of each call.",
    )


def _table(called: Sequence[Called]) -> RenderableType:
    size_bytes, tokens, raw_tokens = (
        sum(getattr(call, name) for call in called)
        for name in ("size_bytes", "tokens", "raw_tokens")
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_footer=True)
    table.add_column("Tool", "in all", overflow="fold")
    table.add_column("Result", human_size(size_bytes), justify="right")
    table.add_column("Tokens with pointers", f"{tokens:,}", justify="right", style="bold")
    table.add_column("Raw", f"{raw_tokens:,}", justify="right")
    for call in called:
        numbers = (human_size(call.size_bytes), f"{call.tokens:,}", f"{call.raw_tokens:,}")
        table.add_row(one_line(call.tool), *numbers)
    return table


def _wire(called: Sequence[Called], tools: Sequence[Tool], own_tokens: int) -> dict[str, object]:
    return {
        "tools": [tool.name for tool in tools],
        "calls": [
            {
                "tool": call.tool,
                "arguments": call.arguments,
                "shown": call.shown,
                "sizeBytes": call.size_bytes,
                "tokens": call.tokens,
                "rawTokens": call.raw_tokens,
                "pointers": list(call.pointers),
            }
            for call in called
        ],
        "schemaTokens": own_tokens,
    }
