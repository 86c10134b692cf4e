"""What a person sets for a proxy: limits of tools, and errors that say what to write instead."""

from pathlib import Path

import pytest

from coatcheck.apps.proxy._settings import Settings, parse_settings, read_settings
from coatcheck.errors import InvalidArgumentError
from coatcheck.records import Limits


def test_nothing_set_is_the_limits_of_the_library() -> None:
    settings = parse_settings("")

    assert settings == Settings()
    assert settings.limits == Limits()


def test_a_limit_holds_for_all_tools_and_a_tool_has_its_own() -> None:
    settings = parse_settings("inline_bytes = 9\n[tools.rows]\ninline_bytes = 0")

    assert settings.inline_limit("a", "rows") == 0
    assert settings.inline_limit("b", "rows") == 0
    assert settings.inline_limit("a", "other") == 9


def test_a_tool_that_is_called_like_one_of_ours_may_be_set() -> None:
    settings = parse_settings("[tools.memory_read]\ninline_bytes = 0")

    assert settings.inline_limit("a", "memory_read") == 0


def test_a_size_is_bytes_or_a_text_that_people_read() -> None:
    settings = parse_settings(
        """
        inline_bytes = "20 kB"
        scope_bytes = "1.5MiB"
        store_bytes = "10GB"
        cache_bytes = 4096
        [tools.rows]
        inline_bytes = "0"
        image_bytes = "1kb"
        """
    )

    assert settings.limits == Limits(
        inline_bytes=20_000,
        scope_bytes=3 * 2**19,
        store_bytes=10**10,
        cache_bytes=4_096,
        per_tool={"rows": 0},
    )
    assert settings.image_limit("a", "rows") == 1_000


def test_the_name_that_a_host_sees_decides_before_the_own_name_of_a_tool() -> None:
    settings = parse_settings("[tools.rows]\ninline_bytes = 1\n[tools.a_rows]\ninline_bytes = 2")

    assert settings.inline_limit("a", "rows") == 2
    assert settings.inline_limit("b", "rows") == 1


def test_a_tool_is_excluded_by_either_name() -> None:
    settings = parse_settings("[tools.rows]\nexclude = true\n[tools.b_x]\nexclude = true")

    assert settings.excludes("a", "rows")
    assert settings.excludes("b", "x")
    assert not settings.excludes("a", "x")


def test_an_exclusion_that_is_false_excludes_nothing() -> None:
    assert not parse_settings("[tools.rows]\nexclude = false").excludes("a", "rows")


def test_images_are_offloaded_only_where_a_tool_has_a_limit_for_them() -> None:
    settings = parse_settings("[tools.shot]\nimage_bytes = 100")

    assert settings.image_limit("a", "shot") == 100
    assert settings.image_limit("a", "other") is None


def test_principals_name_the_variables_that_hold_their_tokens() -> None:
    assert parse_settings('[principals]\nalice = "T_1"').principals == {"alice": "T_1"}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("inline_bites = 1", "'inline_bites' is not a setting", "Did you mean inline_bytes?"),
        ("zzz = 1", "'zzz' is not a setting", "There are: inline_bytes, "),
        ("never = ['a']", "'never' is not a setting", "There are:"),
        ("inline_bytes = 0", "inline_bytes must be 1 or more, got 0", "whole numbers"),
        ("inline_bytes = 'many'", "inline_bytes: a size is a number", "10GB"),
        ("scope_bytes = '-1'", "scope_bytes: a size is a number", "10GB"),
        ("scope_bytes = 0", "scope_bytes must be 1 or more, got 0", "64 MiB"),
        ("store_bytes = '0GB'", "store_bytes must be 1 or more, got 0", "64 MiB"),
        ("store_bytes = true", "store_bytes must be a whole number", "64 MiB"),
        ("page_chars = '9'", "page_chars must be a whole number", "whole numbers"),
        ("inline_bytes = ", "No TOML", "docs/proxy.md"),
        ("tools = 1", "tools is a table, got 1", "[tools.NAME]"),
        ("tools.rows = 1", "tools.rows is a table, got 1", "[tools.rows]"),
        ("[tools.rows]\nlimit = 1", "'limit' is not a setting of tools.rows", "inline_bytes"),
        ("[tools.rows]\ninline_bytes = -1", "0 or more, got -1", "inline_bytes = 20_000"),
        ("[tools.rows]\nimage_bytes = 'x'", "tools.rows.image_bytes: a size is", "10GB"),
        ("[tools.rows]\nimage_bytes = true", "0 or more, got True", "image_bytes = 20_000"),
        ("[tools.rows]\nexclude = 1", "true or false, got 1", "exclude = true"),
        ("[tools.retrieve_context]", "what reads artifacts is never offloaded", "Take the table"),
        ("anonymous_ttl_seconds = 0", "seconds above 0, got 0", "anonymous_ttl_seconds = 3600"),
        ("anonymous_ttl_seconds = true", "seconds above 0, got True", "= 3600"),
        ("principals = 1", "the variable that holds a token", "alice"),
        ("[principals]\nbob = 'a b'", "the variable that holds a token", "bob"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(text: str, message: str, hint: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_settings(text)

    assert message in str(caught.value)
    assert hint in caught.value.hint


def test_an_error_of_a_file_names_it(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text("x = 1")

    with pytest.raises(InvalidArgumentError, match=r"^limits.toml: 'x' is not a setting"):
        read_settings(file)


def test_a_file_that_is_not_there_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be read: No such file"):
        read_settings(tmp_path / "none.toml")


def test_a_file_that_is_no_text_is_an_error_with_its_reason(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_bytes(b"\xff")

    with pytest.raises(InvalidArgumentError, match="no UTF-8"):
        read_settings(file)


def test_a_file_sets_what_it_says(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text("glimpse_tokens = 7\nanonymous_ttl_seconds = 60")

    settings = read_settings(file)

    assert settings.limits == Limits(glimpse_tokens=7)
    assert settings.anonymous_ttl_seconds == 60.0


@pytest.mark.parametrize("name", ["my_server_rows", "my server_rows", "rows"])
def test_a_tool_goes_by_the_name_that_a_host_sees_where_its_server_has_another(name: str) -> None:
    settings = parse_settings(f'[tools."{name}"]\nexclude = true\ninline_bytes = 7')

    assert settings.excludes("my server", "rows", "my_server_rows")
    assert settings.inline_limit("my server", "rows", "my_server_rows") == 7
    assert settings.is_for(name, "my server", "rows", "my_server_rows")
    assert not settings.is_for(name, "other", "lines", "other_lines")
