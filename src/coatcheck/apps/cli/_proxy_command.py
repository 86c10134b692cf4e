"""`coatcheck proxy`: stands in front of MCP servers, or puts itself in front of a host's."""

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...bank import read_journal, without_secrets
from ...bank.savings import savings, total
from ...errors import InvalidArgumentError, shown
from .._printable import one_line
from ._app import Store, app, default_store
from ._lines import human_size
from ._out import note
from ._servers import needs_extra, spec_of_command, specs_of
from ._wrap_host import unwrap_host, wrap_host

if TYPE_CHECKING:
    from ..proxy._config import HttpFront, ProxyConfig, UpstreamSpec
    from ..proxy._servers_file import Refused
    from ..proxy._settings import Settings

_INTERRUPTED = 130
_LAST_PORT = 65_535
_SHORTEST_TOKEN = 16

_Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Servers, as hosts write them: mcpServers."),
]
_SettingsFile = Annotated[
    Path | None, typer.Option("--settings", metavar="FILE", help="Limits, in TOML.")
]
_Scope = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="NAME",
        help="Whose artifacts they are, on stdio.",
        show_default="one of this user and folder",
    ),
]
_Journal = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        envvar="COATCHECK_JOURNAL",
        metavar="FILE",
        help="Where calls are noted, for stats.",
        show_default="journal.jsonl in your state folder",
    ),
]
_Http = Annotated[
    str | None,
    typer.Option("--http", metavar="HOST:PORT", help="Serve streamable HTTP in place of stdio."),
]
_Wrap = Annotated[
    Path | None,
    typer.Option("--wrap", metavar="FILE", help="Put the proxy into a host's configuration."),
]
_Unwrap = Annotated[
    Path | None, typer.Option("--unwrap", metavar="FILE", help="Undo what --wrap did to it.")
]
_EntryName = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="With --wrap: how the host calls the proxy.",
        show_default="coatcheck, or coatcheck-user in a file of yours",
    ),
]


@app.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Example: coatcheck proxy -- npx -y @modelcontextprotocol/server-filesystem .",
)
def proxy(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- CMD …", help="What starts a server, or its URL."),
    ] = None,
    *,
    config: _Config = None,
    settings: _SettingsFile = None,
    store: Store = None,
    scope: _Scope = None,
    journal: _Journal = None,
    no_journal: Annotated[bool, typer.Option("--no-journal", help="Note no calls.")] = False,
    http: _Http = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Pass all on as it is, and tell what it would save.")
    ] = False,
    wrap: _Wrap = None,
    unwrap: _Unwrap = None,
    name: _EntryName = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a file changes.")] = False,
) -> None:
    """Stand before MCP servers: large results become pointers, and pointers arguments.

    Behind --config with several servers a tool is listed as server_tool.
    """
    ways = [bool(command), config is not None, wrap is not None, unwrap is not None]
    if sum(ways) != 1:
        raise InvalidArgumentError(
            "It takes one of: -- CMD …, --config FILE, --wrap FILE, --unwrap FILE.",
            "coatcheck proxy -- npx -y some-server",
        )
    if name is not None and wrap is None:
        raise InvalidArgumentError("--name goes with --wrap.", "Leave it out.")
    if unwrap is not None:
        unwrap_host(unwrap, yes=yes)
        return
    of_user = _settings(settings, dry_run=dry_run)
    if wrap is not None:
        kept = _kept(context, settings, scope, http)
        flags = {"--no-journal": no_journal, "--dry-run": dry_run}
        given = [flag for flag, is_set in flags.items() if is_set]
        wrap_host(wrap, kept, given, name=name, yes=yes)
        return
    each = spec_of_command(command) if command else specs_of(config or Path())
    _serve(
        _startable(each),
        of_user,
        # That one of several cannot be started gives the tools of the others no other names.
        prefixed=len(each) > 1,
        store=default_store() if store is None else store,
        scope=scope,
        http=http,
        journal=None if no_journal or dry_run else _journal_file(journal),
    )


def _kept(
    context: typer.Context, settings: Path | None, scope: str | None, http: str | None
) -> dict[str, str | None]:
    """Return the options that a host's configuration starts the proxy with.

    Raises:
        InvalidArgumentError: One of them is none for a proxy that a host starts.
    """
    if http is not None:
        raise InvalidArgumentError("A host starts the proxy over stdio.", "Leave out --http.")
    return {
        "--settings": None if settings is None else str(settings.absolute()),
        "--store": _given(context, "store"),
        "--scope": scope,
        "--journal": _given(context, "journal"),
    }


def _startable(each: "Sequence[UpstreamSpec | Refused]") -> "tuple[UpstreamSpec, ...]":
    """Return the servers that can be started, and tell of the others.

    Raises:
        InvalidArgumentError: None of them can.
    """
    from ..proxy._servers_file import Refused

    refused = [one.error for one in each if isinstance(one, Refused)]
    if len(refused) == len(each):
        raise refused[0]
    for error in refused:
        note(f"coatcheck proxy: left out: {error} {error.hint}")
    return tuple(one for one in each if not isinstance(one, Refused))


def _given(context: typer.Context, parameter: str) -> str | None:
    """Return what was typed for an option; what the environment says is not for a file."""
    source = context.get_parameter_source(parameter)
    value = context.params[parameter]
    is_typed = source is not None and source.name == "COMMANDLINE"
    return str(value) if is_typed else None


def _serve(
    upstreams: "tuple[UpstreamSpec, ...]",
    settings: "Settings",
    *,
    prefixed: bool,
    store: str,
    scope: str | None,
    http: str | None,
    journal: Path | None,
) -> None:
    from ..proxy._config import ProxyConfig

    config = ProxyConfig(
        upstreams=upstreams,
        prefixed=prefixed,
        store=store,
        settings=settings,
        scope=scope,
        front="stdio" if http is None else _http_front(http, settings.principals),
        journal=journal,
    )
    note(_start_line(config))
    if settings.dry_run:
        _run_dry(config)
    else:
        _run(config)


def _run(config: "ProxyConfig") -> None:
    needs_extra()
    from ..proxy._program import run_proxy

    try:
        asyncio.run(run_proxy(config))
    except (ValueError, ImportError) as error:
        raise InvalidArgumentError(str(error), "Look at --store and --scope.") from error
    except OSError as error:
        raise InvalidArgumentError(
            f"The proxy cannot start: {error.strerror or error}.", "Look at --http and --journal."
        ) from error
    except KeyboardInterrupt:
        raise typer.Exit(_INTERRUPTED) from None


def _run_dry(config: "ProxyConfig") -> None:
    """Run the proxy so that it changes nothing and keeps nothing, and tell what it would save."""
    with tempfile.TemporaryDirectory(prefix="coatcheck-") as folder:
        journal = Path(folder, "journal.jsonl")
        _run(replace(config, store=f"file:{folder}/store", journal=journal))
        calls = list(read_journal(journal)) if journal.exists() else []
    whole = total(calls)
    note(
        f"coatcheck proxy: dry run, {whole.calls:,} calls; {whole.banked:,} results would have been"
        f" pointers, and about {whole.result_tokens - whole.shown_tokens:,} of"
        f" {whole.result_tokens:,} tokens kept out, each text counted once"
    )
    for one in savings(calls):
        if one.banked:
            note(
                f"  {one_line(one.tool or '-')}: {human_size(one.size_bytes)} in {one.calls:,}"
                f" calls, {one.result_tokens:,} tokens would have been {one.shown_tokens:,}"
            )


def _start_line(config: "ProxyConfig") -> str:
    """Return the one line that a start prints."""
    from ..proxy._scope import local_scope

    names = one_line(", ".join(upstream.name for upstream in config.upstreams))
    kept = f"artifacts in {without_secrets(config.store)}"
    if config.settings.dry_run:
        kept = "a dry run, which keeps nothing"
    front = config.front
    if isinstance(front, str):
        kept += f", scope {one_line(config.scope or local_scope())}"
        return f"coatcheck proxy: {names} over stdio; {kept}"
    return f"coatcheck proxy: {names} at http://{front.host}:{front.port}/mcp; {kept}"


def _settings(file: Path | None, *, dry_run: bool) -> "Settings":
    from ..proxy._settings import Settings, read_settings

    return replace(Settings() if file is None else read_settings(file), dry_run=dry_run)


def _http_front(address: str, principals: Mapping[str, str]) -> "HttpFront":
    """Return where to serve, with the tokens that the environment holds.

    Raises:
        InvalidArgumentError: The address is wrong; a token is missing, too short, or of two.
    """
    from ..proxy._config import HttpFront

    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not port.isascii() or int(port) > _LAST_PORT:
        raise InvalidArgumentError(
            f"--http is HOST:PORT, got {shown(address)}.", "--http 127.0.0.1:8000"
        )
    by_token: dict[str, str] = {}
    for name, variable in principals.items():
        token = os.environ.get(variable, "")
        if len(token) < _SHORTEST_TOKEN or token in by_token:
            raise InvalidArgumentError(
                f"The variable {variable} holds the token of {shown(name)}: at least "
                f"{_SHORTEST_TOKEN} characters, and of nobody else.",
                f"export {variable}=$(openssl rand -hex 32)",
            )
        by_token[token] = name
    return HttpFront(host=host.strip("[]"), port=int(port), principals=by_token)


def _journal_file(named: Path | None) -> Path:
    from platformdirs import user_state_path

    file = named or user_state_path("coatcheck") / "journal.jsonl"
    try:
        if named is None:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.open("ab").close()
    except OSError as error:
        raise InvalidArgumentError(
            f"The journal {shown(str(file))} cannot be written: {error.strerror}.",
            "Name another with --journal, or none with --no-journal.",
        ) from error
    return file
