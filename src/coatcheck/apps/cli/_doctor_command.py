"""`coatcheck doctor`: looks whether all is well, and says what to do where it is not."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...bank import folder_at, store_at, without_secrets
from ...errors import InvalidArgumentError
from .._printable import one_line
from ._app import STORE_FAILED, BeforeCommand, Json, Store, app, default_store
from ._out import draw, is_terminal, write, write_json
from ._servers import behind_proxies, needs_extra, spec_of_command

if TYPE_CHECKING:
    from ..proxy._config import UpstreamSpec
    from ..proxy._servers_file import Refused
    from ._doctor import Finding

_SIGNS = {"ok": ("✓", "green"), "warning": ("!", "yellow"), "failed": ("✗", "bold red")}


@app.command(cls=BeforeCommand, epilog="Example: coatcheck doctor --store s3://bucket/coatcheck")
def doctor(
    context: typer.Context,
    *,
    store: Store = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Look at these servers too: mcpServers."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check what is installed, and whether the store is reached, written, roomy and on time.

    With --config FILE or -- CMD … it also starts MCP servers, as the proxy would, and lists their
    tools. Each trouble comes with its remedy; where something has failed it ends with 3.
    """
    address = default_store() if store is None else store
    if address == "memory:":
        raise InvalidArgumentError("memory: is always well, and gone with the command.")
    command = BeforeCommand.of(context)
    if command and config is not None:
        raise InvalidArgumentError("--config and -- CMD exclude each other.")
    specs: Sequence[UpstreamSpec | Refused] = ()
    if command or config is not None:
        specs = spec_of_command(command) if command else behind_proxies(config or Path())
    findings = asyncio.run(_look(address, specs))
    is_well = all(finding.state != "failed" for finding in findings)
    if as_json:
        write_json(
            {
                "store": without_secrets(address),
                "ok": is_well,
                "checks": [
                    {
                        "check": finding.check,
                        "state": finding.state,
                        "told": finding.told,
                        "remedy": finding.remedy,
                    }
                    for finding in findings
                ],
            }
        )
    else:
        _show(findings)
    if not is_well:
        raise typer.Exit(STORE_FAILED)


async def _look(address: str, specs: "Sequence[UpstreamSpec | Refused]") -> "list[Finding]":
    store = await _look_at_store(address)
    if not specs:
        return store
    needs_extra()
    from ._doctor_upstreams import examine_upstreams

    return store + await examine_upstreams(specs)


async def _look_at_store(address: str) -> "list[Finding]":
    from ._doctor import Finding, examine, installation

    findings = installation()
    try:
        store = store_at(address)
    except ValueError as error:
        raise InvalidArgumentError(str(error), "Look at --store.") from error
    except ImportError as error:
        return [*findings, Finding("store", "failed", "an extra is missing", str(error))]
    try:
        folder = folder_at(address)
        return findings + [each async for each in examine(store, address, folder)]
    finally:
        await store.close()


def _show(findings: "list[Finding]") -> None:
    if not is_terminal():
        for finding in findings:
            fields = (finding.state, finding.check, finding.told, finding.remedy)
            write("\t".join(one_line(field) for field in fields) + "\n")
        return
    from rich.text import Text

    for finding in findings:
        sign, style = _SIGNS[finding.state]
        check = (f"{one_line(finding.check)}: ", "bold")
        draw(Text.assemble((f"{sign} ", style), check, one_line(finding.told)))
        if finding.remedy:
            draw(Text(f"  {one_line(finding.remedy)}", "dim" if finding.state == "ok" else ""))
