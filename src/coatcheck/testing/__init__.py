"""Tests that others inherit to prove their own parts, and what such tests need.

Needs pytest and hypothesis. Nothing of Coatcheck outside of tests imports it.
"""

from ._chat import ChatServer, chat_server
from ._clock import ManualClock
from ._lasting import Advance
from ._machine import StoreMachine, check_store, store_machine
from ._servers import (
    S3Server,
    Server,
    ServerStartError,
    free_port,
    redis_server,
    running,
    s3_server,
)
from ._stores import StoreSuite
from ._wire import Wire, wire_to

__all__ = [
    "Advance",
    "ChatServer",
    "ManualClock",
    "S3Server",
    "Server",
    "ServerStartError",
    "StoreMachine",
    "StoreSuite",
    "Wire",
    "chat_server",
    "check_store",
    "free_port",
    "redis_server",
    "running",
    "s3_server",
    "store_machine",
    "wire_to",
]
