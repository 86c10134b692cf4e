"""What all tests share: asyncio as the event loop, and property tests that repeat."""

import secrets
import socket
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from coatcheck.testing import S3Server, Server, Wire

pytest.register_assert_rewrite("coatcheck.testing")

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],  # how fast the machine is proves nothing
)
settings.register_profile(
    "soak", settings.get_profile("suite"), derandomize=False, max_examples=5_000, print_blob=True
)
settings.load_profile("suite")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[S3Server]":
    """Return an S3 server that all tests share: each takes a prefix of its own."""
    from coatcheck.testing import s3_server  # not before its asserts are rewritten

    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Server]":
    """Return a Redis server that all tests share: each takes a prefix of its own."""
    from coatcheck.testing import redis_server

    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_url(redis: "Server") -> Iterator[str]:
    """Return the address of an empty store on the shared Redis server."""
    yield f"{redis.url}?prefix={secrets.token_hex(6)}:"
    # So that a test that looks at all keys of the server has but its own to look at.
    with socket.create_connection(("127.0.0.1", redis.port)) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        connection.recv(5)


@pytest.fixture
async def wire(redis: "Server") -> "AsyncIterator[Wire]":
    """Return a way to the shared Redis server that can lose commands and answers."""
    from coatcheck.testing import wire_to

    async with wire_to(redis.port) as wire:
        yield wire
