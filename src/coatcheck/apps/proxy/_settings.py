"""What a person sets for a proxy, in a TOML file: limits, for all tools and for each."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from ...errors import InvalidArgumentError, shown
from ...records import Limits
from .._amounts import size_bytes
from ._reader import READER

_TOOLS = "tools"
_PRINCIPALS = "principals"
_LASTING = "anonymous_ttl_seconds"
_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
# Set per tool; or of no use here, where no turn is seen and nothing is banked by hand.
_NO_SETTING = frozenset({"per_tool", "never", "turn_bytes", "banked_preview_chars"})
_LIMITS = tuple(each.name for each in fields(Limits) if each.name not in _NO_SETTING)
_OF_A_TOOL = ("inline_bytes", "image_bytes", "exclude")
_SIZES = 'Sizes are whole numbers, or texts such as "64 MiB"; all else is whole numbers.'


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How much of a result is shown, and which tools are left alone.

    A tool goes by its own name, which means it on every server, or by the one that a host sees
    behind several servers, ``server_tool``, which decides before the other.
    """

    limits: Limits = field(default_factory=Limits)
    exclude: frozenset[str] = frozenset()
    """Tools that the proxy passes on as they are: schema, arguments and results."""
    image_bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    """From which size of its base64 text on an image block of a tool is offloaded; where nothing
    is said of a tool, none is."""
    anonymous_ttl_seconds: float = 3_600.0
    """How long what is banked for a client without identity lasts: on HTTP, without sign-in,
    session or scope."""
    principals: Mapping[str, str] = field(default_factory=dict[str, str])
    """Who may call over HTTP, by name: the variable of the environment that holds the token."""
    dry_run: bool = False
    """Whether all is passed on as it is, and only counted."""

    @property
    def tools(self) -> frozenset[str]:
        """The names of all tools that something is set for, as a person wrote them."""
        return frozenset({*self.limits.per_tool, *self.exclude, *self.image_bytes})

    def is_for(self, name: str, upstream: str, tool: str, listed_as: str | None = None) -> bool:
        """Return whether what is set for a name holds for a tool of an upstream.

        Args:
            name: As a person wrote it.
            upstream: The name of the upstream.
            tool: The tool's own name there.
            listed_as: The tool's name as a host sees it; None is its own.
        """
        return name in _names(upstream, tool, listed_as)

    def excludes(self, upstream: str, tool: str, listed_as: str | None = None) -> bool:
        """Return whether a tool is passed on as it is."""
        return not self.exclude.isdisjoint(_names(upstream, tool, listed_as))

    def inline_limit(self, upstream: str, tool: str, listed_as: str | None = None) -> int:
        """Return the size in bytes from which on a block of text of a tool is offloaded."""
        found = _first(self.limits.per_tool, _names(upstream, tool, listed_as))
        return self.limits.inline_bytes if found is None else found

    def image_limit(self, upstream: str, tool: str, listed_as: str | None = None) -> int | None:
        """Return the size in bytes of base64 from which on an image of a tool is offloaded."""
        return _first(self.image_bytes, _names(upstream, tool, listed_as))


def read_settings(file: Path) -> Settings:
    """Return the settings of a TOML file.

    Raises:
        InvalidArgumentError: It cannot be read, is no TOML, or sets what there is not.
    """
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is no UTF-8 text" if isinstance(error, ValueError) else error.strerror
        raise InvalidArgumentError(
            f"The settings {shown(str(file))} cannot be read: {reason}.", "Look at --settings."
        ) from error
    try:
        return parse_settings(text)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{file.name}: {error}", error.hint) from error


def parse_settings(text: str) -> Settings:
    r"""Return the settings of a TOML text.

    Raises:
        InvalidArgumentError: It is no TOML, or sets what there is not.

    >>> settings = parse_settings("store_bytes = '10GB'\n[tools.rows]\ninline_bytes = 0")
    >>> settings.inline_limit("files", "rows"), settings.limits.store_bytes
    (0, 10000000000)
    """
    try:
        set_here = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"No TOML: {error}.", "See docs/proxy.md.") from error
    known = (*_LIMITS, _LASTING, _PRINCIPALS, _TOOLS)
    _check_names(set_here, known, "a setting")
    set_here = _sized(set_here)
    tools = _tables(set_here.get(_TOOLS, {}))
    per_tool = {
        name: each["inline_bytes"] for name, each in tools.items() if "inline_bytes" in each
    }
    own = {name: set_here[name] for name in _LIMITS if name in set_here}
    try:
        limits = Limits(**own, per_tool=MappingProxyType(per_tool))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{error}.", _SIZES) from error
    return Settings(
        limits=limits,
        exclude=frozenset(name for name, each in tools.items() if each.get("exclude", False)),
        image_bytes=MappingProxyType(
            {name: each["image_bytes"] for name, each in tools.items() if "image_bytes" in each}
        ),
        anonymous_ttl_seconds=_seconds(set_here.get(_LASTING, 3_600)),
        principals=_variables(set_here.get(_PRINCIPALS, {})),
    )


def _tables(found: object) -> dict[str, dict[str, Any]]:
    """Return the settings of each tool, each of which is known and of its type."""
    if not isinstance(found, dict):
        raise InvalidArgumentError(f"{_TOOLS} is a table, got {shown(found)}.", "[tools.NAME]")
    tables = cast("dict[str, object]", found)
    for name, table in tables.items():
        where = f"tools.{name}"
        if not isinstance(table, dict):
            raise InvalidArgumentError(f"{where} is a table, got {shown(table)}.", f"[{where}]")
        if name == READER:
            raise InvalidArgumentError(
                f"{where}: what reads artifacts is never offloaded.", "Take the table out."
            )
        of_tool = cast("dict[str, object]", table)
        _check_names(of_tool, _OF_A_TOOL, f"a setting of {where}")
        tables[name] = of_tool = _sized(of_tool, f"{where}.")
        _check_types(of_tool, where)
    return cast("dict[str, dict[str, Any]]", tables)


def _sized(found: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Return settings with each size that a person wrote as text as its bytes."""
    sized = dict(found)
    for name, value in found.items():
        if name.endswith("_bytes") and isinstance(value, str):
            try:
                sized[name] = size_bytes(value)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{where}{name}: {error}", error.hint) from error
    return sized


def _check_types(of_tool: Mapping[str, object], where: str) -> None:
    for name, value in of_tool.items():
        if name == "exclude":
            if not isinstance(value, bool):
                raise InvalidArgumentError(
                    f"{where}.exclude is true or false, got {shown(value)}.", "exclude = true"
                )
        elif not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise InvalidArgumentError(
                f"{where}.{name} is a whole number, 0 or more, got {shown(value)}.",
                f"{name} = 20_000",
            )


def _check_names(found: Mapping[str, object], known: tuple[str, ...], what: str) -> None:
    for name in found:
        if name not in known:
            nearest = get_close_matches(name, known, n=1)
            hint = f"Did you mean {nearest[0]}?" if nearest else f"There are: {', '.join(known)}."
            raise InvalidArgumentError(f"{shown(name)} is not {what}.", hint)


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        raise InvalidArgumentError(
            f"{_LASTING} is a number of seconds above 0, got {shown(value)}.", f"{_LASTING} = 3600"
        )
    return float(value)


def _variables(found: object) -> Mapping[str, str]:
    """Return the variable of each principal."""
    principals = cast("dict[str, object]", found) if isinstance(found, dict) else {"": found}
    for name, variable in principals.items():
        if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
            raise InvalidArgumentError(
                f"{_PRINCIPALS} is a table of names, each with the variable that holds a token.",
                f'[{_PRINCIPALS}] and below it: {name or "alice"} = "ALICE_TOKEN"',
            )
    return MappingProxyType(cast("dict[str, str]", principals))


def _names(upstream: str, tool: str, listed_as: str | None) -> tuple[str, ...]:
    names = (f"{upstream}_{tool}", tool)
    # What a host sees differs where the first is too long, or may not stand in a name.
    return names if listed_as is None or listed_as in names else (listed_as, *names)


def _first(by_name: Mapping[str, int], names: tuple[str, ...]) -> int | None:
    return next((by_name[name] for name in names if name in by_name), None)
