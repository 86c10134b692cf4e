"""The program: its options, how it opens a bank, and how errors become exit codes."""

import os
import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ...bank import BlockingBank, is_begun, portal, without_secrets
from ...errors import (
    BinaryPayloadError,
    CoatcheckError,
    DamagedPayloadError,
    DamagedRecordError,
    ExpiredPointerError,
    InvalidArgumentError,
    NothingSelectedError,
    StoreError,
    UnknownPointerError,
)
from ...records import is_pointer
from ...tools import Failure, as_failure
from .._environment import named_store
from .._printable import harmless, one_line
from ._out import note

NOT_FOUND = 1
USAGE = 2
STORE_FAILED = 3

LIST_HINT = "`coatcheck ls` lists what there is."

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="COATCHECK_STORE",
        metavar="ADDRESS",
        help="Where artifacts lie: file:DIR or a path, redis://HOST, s3://BUCKET/PREFIX, gs://, "
        "az://.",
        show_default="REDIS_URL, REDIS_HOST, else file: in your data folder",
    ),
]
Scope = Annotated[str, typer.Option("--scope", metavar="NAME", help="Whose artifacts they are.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document, errors too.")]
PointerText = Annotated[
    str, typer.Argument(metavar="POINTER", help="A pointer, also with #selector; an id or a name.")
]


class NoStoreError(CoatcheckError):
    """Nothing was ever banked at an address: more often than not it is mistyped."""

    code = "not-found"

    def __init__(self, address: str) -> None:
        super().__init__(f"There is no store at {without_secrets(address)!r}.")
        self.hint = "Nothing is banked there. `coatcheck put` begins one; --store names another."


class Commands(TyperGroup):
    """The commands, and the one place where an error becomes an exit code."""

    def main(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401 - as in what it overrides
        given = extra.get("args")
        as_json = "--json" in (sys.argv[1:] if given is None else given)
        try:
            code = super().main(*args, **(extra | {"standalone_mode": False}))
        except CoatcheckError as error:
            report(as_failure(error), as_json=as_json)
            code = exit_code(error)
        except typer.TyperException as error:
            report(_usage_failure(error), as_json=as_json)
            code = USAGE
        sys.exit(code)


_NOT_THERE = (UnknownPointerError, ExpiredPointerError, NothingSelectedError, NoStoreError)


class BeforeCommand(TyperCommand):
    """A command behind whose own arguments, after ``--``, that of a server may stand."""

    _KEY = "coatcheck.command"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as in what it overrides
        own, command = args, list[str]()
        if "--" in args:
            at = args.index("--")
            own, command = args[:at], args[at + 1 :]
        ctx.meta[self._KEY] = command
        return super().parse_args(ctx, own)

    @classmethod
    def of(cls, context: typer.Context) -> list[str]:
        """Return what stood behind ``--``, nothing where nothing did."""
        return list(context.meta[cls._KEY])


def exit_code(error: CoatcheckError) -> int:
    """Return 1 where nothing was found, 3 where the store failed, else 2: wrong usage."""
    if isinstance(error, _NOT_THERE):
        return NOT_FOUND
    return STORE_FAILED if isinstance(error, StoreError) else USAGE


def report(failure: Failure, *, as_json: bool) -> None:
    """Write what went wrong to standard error."""
    if as_json:
        sys.stderr.write(f"{harmless(str(failure))}\n")
        return
    note(f"coatcheck: {failure.message}", "bold red")
    if failure.hint:
        note(f"  {failure.hint}")
    if failure.glimpse:
        note(f"  It was: {one_line(failure.glimpse)}")


@contextmanager
def opened(
    store: str | None, scope: str, *, passing: bool = False, begins: bool = False
) -> Generator[BlockingBank]:
    """Open a bank for the time of a `with`; errors inside get hints for who types commands.

    Args:
        store: Its address; None is that of `default_store`.
        scope: As for `BlockingBank`.
        passing: Whether a store will do that is gone with the command.
        begins: Whether the command may be the first to use the store.

    Raises:
        InvalidArgumentError: No store has this address, or the scope is empty.
        NoStoreError: Nothing was ever banked there.
    """
    address = default_store() if store is None else store
    if address == "memory:" and not passing:
        raise InvalidArgumentError(
            "memory: ends with this command, and what it holds with it.",
            "Use --store file:DIR; only the demo can do with memory:.",
        )
    try:
        bank = BlockingBank(address, scope=scope)
    except (ValueError, ImportError) as error:
        named = named_store(os.environ) if store is None else None
        where = "--store" if named is None else named.variable
        raise InvalidArgumentError(str(error), f"Look at {where} and --scope.") from error
    with bank:
        try:
            if not begins and not portal().run(is_begun(address)):
                raise NoStoreError(address)
            yield bank
        except UnknownPointerError as error:
            error.hint = _hint_of_unknown(bank, address, scope, error)
            raise
        except BinaryPayloadError as error:
            error.hint = "`coatcheck read --unit bytes` reads it."
            raise
        except (DamagedPayloadError, DamagedRecordError) as error:
            error.hint = "`coatcheck rm` removes it; what else is in the store can be read."
            raise
        except StoreError as error:
            error.hint = f"The store is {without_secrets(address)}; --store names another."
            raise


def _hint_of_unknown(
    bank: BlockingBank, address: str, scope: str, error: UnknownPointerError
) -> str:
    """Return what to do where a scope does not know a pointer, an id or a name."""
    from ._scopes import told_of_names

    name, mark, selector = error.pointer.partition("#")
    if mark and not is_pointer(error.pointer):
        named = bank.find(name)
        if named is not None:
            whole = shlex.quote(f"{named.pointer}#{selector}")
            return f"A name takes no selector, its pointer does: {one_line(whole)}"
    nearest = f"Nearest here: {', '.join(error.nearest)}. " if error.nearest else ""
    others = told_of_names(address, scope)
    return f"{nearest}{LIST_HINT}" + (f" {others}" if others else "")


def default_store() -> str:
    """Return the address that the environment names, else that in the user's data folder."""
    named = named_store(os.environ)
    if named is not None:
        return named.address
    from platformdirs import user_data_path

    return f"file:{user_data_path('coatcheck')}"


def _usage_failure(error: typer.TyperException) -> Failure:
    context: Any = getattr(error, "ctx", None)
    command = "coatcheck" if context is None else context.command_path
    message = error.format_message().removesuffix(".")
    return Failure("invalid-argument", f"{message}.", f"`{command} --help` explains the command.")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        from importlib.metadata import version

        typer.echo(f"coatcheck {version('coatcheck')}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def coatcheck(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Keep large values out of an agent's context: bank them whole, read them in windows.

    Exit codes: 0 done, 1 not found, 2 wrong usage, 3 the store failed.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(USAGE)
