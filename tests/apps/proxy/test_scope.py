"""Whose artifacts a call may see."""

import os
from pathlib import Path
from typing import Any

import pytest

from coatcheck.apps.proxy._scope import Scope, local_scope, scope_of
from coatcheck.errors import InvalidArgumentError
from coatcheck.tools import META_SCOPE


def scope(**known: Any) -> Scope:
    asked: dict[str, Any] = {
        "principal": None,
        "meta": None,
        "session_id": None,
        "transport": "http",
        "local": "local-1",
        "anonymous_ttl_seconds": 60.0,
    }
    return scope_of(**(asked | known))


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"principal": "ann", "meta": {META_SCOPE: "r"}, "session_id": "s"}, "principal:ann"),
        ({"meta": {META_SCOPE: "run-42", "other": 1}, "session_id": "s"}, "meta:run-42"),
        ({"meta": {"other": 1}, "session_id": "s"}, "session:s"),
        ({"transport": "stdio", "meta": {META_SCOPE: "run-42"}}, "run-42"),
        ({"transport": "stdio", "session_id": "s"}, "local-1"),
        ({"transport": "stdio"}, "local-1"),
    ],
)
def test_the_first_that_is_known_decides(known: dict[str, Any], expected: str) -> None:
    found = scope(**known)

    assert found == Scope(expected)
    assert not found.is_anonymous


def test_over_http_who_says_nothing_is_anonymous_and_keeps_nothing_long() -> None:
    found = scope(meta={})

    assert found.is_anonymous
    assert found.ttl_seconds == 60


def test_over_http_no_client_can_name_the_scope_of_another() -> None:
    others = [scope(principal="ann"), scope(session_id="s"), scope(transport="stdio"), scope()]

    claimed = [scope(meta={META_SCOPE: each.name}) for each in others]

    assert {each.name for each in others}.isdisjoint(each.name for each in claimed)


@pytest.mark.parametrize("said", ["", "x" * 201, 5, [], {}, False])
def test_a_scope_that_breaks_its_rule_is_refused_and_not_passed_over(said: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"coatcheck/scope is a text of 1 to 200"):
        scope(meta={META_SCOPE: said})


def test_the_longest_scope_is_taken() -> None:
    assert scope(meta={META_SCOPE: "x" * 200}).name == "meta:" + "x" * 200


def test_the_local_scope_is_that_of_the_user_and_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = local_scope()
    (tmp_path / "other").mkdir()
    os.chdir("other")
    there = local_scope()
    os.chdir("..")

    assert here.startswith("local-")
    assert here != there
    assert local_scope() == here
    (tmp_path / "link").symlink_to(tmp_path / "other")
    os.chdir("link")
    assert local_scope() == there
