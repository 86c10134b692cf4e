"""Which store the environment names: the first variable that is set decides, and alone."""

import re

import pytest

from coatcheck.apps._environment import NamedStore, named_store
from coatcheck.errors import InvalidArgumentError
from coatcheck.stores import RedisStore

ALL = {
    "COATCHECK_STORE": "file:/a",
    "REDIS_URL": "rediss://:secret@url/1",
    "REDIS_HOST": "host",
    "REDIS_PORT": "7000",
    "REDIS_USERNAME": "user",
    "REDIS_PASSWORD": "p/w@:ü",
    "REDIS_DB": "3",
}


def test_coatcheck_store_goes_before_redis_url_and_that_before_redis_host() -> None:
    environment = dict(ALL)

    assert named_store(environment) == NamedStore("file:/a", "COATCHECK_STORE")
    del environment["COATCHECK_STORE"]
    assert named_store(environment) == NamedStore("rediss://:secret@url/1", "REDIS_URL")
    del environment["REDIS_URL"]
    address = "redis://user:p%2Fw%40%3A%C3%BC@host:7000/3"
    assert named_store(environment) == NamedStore(address, "REDIS_HOST")
    del environment["REDIS_HOST"]
    # What goes with a host names none.
    assert named_store(environment) is None


def test_an_empty_variable_counts_as_none() -> None:
    empty = dict.fromkeys(ALL, "") | {"REDIS_TTL": ""}

    assert named_store(empty) is None
    assert named_store(empty | {"REDIS_HOST": "h"}) == NamedStore("redis://h:6379/0", "REDIS_HOST")


@pytest.mark.parametrize(
    ("more", "address"),
    [
        ({}, "redis://host:6379/0"),
        ({"REDIS_PORT": "1"}, "redis://host:1/0"),
        ({"REDIS_PASSWORD": "a b"}, "redis://:a%20b@host:6379/0"),
        ({"REDIS_USERNAME": "u"}, "redis://u:@host:6379/0"),
        ({"REDIS_HOST": "::1"}, "redis://[::1]:6379/0"),
        ({"REDIS_TTL": "60"}, "redis://host:6379/0?ttl_seconds=60"),
        ({"REDIS_KEY_PREFIX": "theirs:"}, "redis://host:6379/0"),
    ],
)
def test_a_host_makes_an_address_with_what_goes_with_it(more: dict[str, str], address: str) -> None:
    named = named_store({"REDIS_HOST": "host", **more})

    assert named == NamedStore(address, "REDIS_HOST")
    RedisStore(address)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://h", "redis://h?ttl_seconds=60"),
        ("redis://h/1?prefix=a", "redis://h/1?prefix=a&ttl_seconds=60"),
        # What is meant for other programs does no harm.
        ("redis://h?decode_responses=1", "redis://h?decode_responses=1&ttl_seconds=60"),
    ],
)
def test_a_time_goes_with_a_url_too(url: str, address: str) -> None:
    assert named_store({"REDIS_URL": url, "REDIS_TTL": "60"}) == NamedStore(address, "REDIS_URL")
    assert RedisStore(address).ttl_seconds == 60


def test_nothing_of_redis_goes_with_coatcheck_store() -> None:
    environment = ALL | {"COATCHECK_STORE": "redis://other", "REDIS_TTL": "no number"}

    assert named_store(environment) == NamedStore("redis://other", "COATCHECK_STORE")


@pytest.mark.parametrize("name", ["REDIS_PORT", "REDIS_DB", "REDIS_TTL"])
@pytest.mark.parametrize("text", ["x", "-", "1 2", "٣x"])
def test_a_number_that_is_none_is_told_by_the_name_of_its_variable(name: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} is a number, got '{re.escape(text)}'"):
        named_store({"REDIS_HOST": "host", name: text})


@pytest.mark.parametrize("name", ["REDIS_PORT", "REDIS_DB"])
@pytest.mark.parametrize("text", ["-1", "1.5", "٣"])
def test_a_port_or_database_is_a_whole_number(name: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"{name} is a number"):
        named_store({"REDIS_HOST": "host", name: text})


@pytest.mark.parametrize("url", ["file:/a", "http://h", "redis:h", "h:6379", "memory:", "//[h"])
def test_redis_url_is_of_no_other_store(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="REDIS_URL is one of"):
        named_store({"REDIS_URL": url, "REDIS_HOST": "h"})
