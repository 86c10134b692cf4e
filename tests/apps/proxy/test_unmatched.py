"""Settings for tools that there are not: told once, when all tools are known."""

import pytest

from coatcheck.apps.proxy._settings import parse_settings
from coatcheck.apps.proxy._unmatched import Unmatched

SETTINGS = parse_settings(
    """
    [tools.rows]
    inline_bytes = 1
    [tools.db_shot]
    image_bytes = 1
    [tools.read_al]
    exclude = true
    """
)


@pytest.mark.parametrize(
    ("listed", "told"),
    [
        ([("db", "rows"), ("db", "shot"), ("db", "read_al")], []),
        ([("db", "rows"), ("db", "shot"), ("db", "read_all")], ["read_al"]),
        ([("a", "rows"), ("a", "shot"), ("a", "read_al")], ["db_shot"]),
        ([], ["db_shot", "read_al", "rows"]),
    ],
)
def test_each_name_that_no_server_lists_is_told(
    listed: list[tuple[str, str]], told: list[str]
) -> None:
    lines: list[str] = []
    unmatched = Unmatched(SETTINGS)

    for upstream, tool in listed:
        unmatched.listed(upstream, tool)
    unmatched.tell(lines.append)

    assert [line.split("'")[1] for line in lines] == told


def test_the_tool_that_may_be_meant_is_told_too() -> None:
    lines: list[str] = []
    unmatched = Unmatched(parse_settings("[tools.read_al]\nexclude = true"))
    unmatched.listed("a", "read_all")

    unmatched.tell(lines.append)

    (line,) = lines
    assert line.startswith("coatcheck proxy: the settings name a tool 'read_al', which no server")
    assert line.endswith(" Did you mean 'read_all'?")


def test_it_is_told_once() -> None:
    lines: list[str] = []
    unmatched = Unmatched(SETTINGS)
    unmatched.tell(lines.append)

    unmatched.listed("a", "read_all")
    unmatched.tell(lines.append)

    assert len(lines) == 3


def test_a_name_cannot_forge_a_line() -> None:
    lines: list[str] = []
    name = '"x\\nforged\\u001b[2J"'

    Unmatched(parse_settings(f"[tools.{name}]\nexclude = true")).tell(lines.append)

    assert "\n" not in lines[0]
    assert "\x1b" not in lines[0]
