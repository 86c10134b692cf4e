"""Tests that others inherit to prove their own parts, and what such tests need.

Needs pytest and hypothesis. Nothing of Coatcheck outside of tests imports it.
"""

from ._adapter_driver import INSTRUCTIONS, PROMPT
from ._adapter_script import How, ModelCall, ScriptedModel, Seen, Turn, pointer_in
from ._adapters import AdapterSuite
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
    "INSTRUCTIONS",
    "PROMPT",
    "AdapterSuite",
    "Advance",
    "ChatServer",
    "How",
    "ManualClock",
    "ModelCall",
    "S3Server",
    "ScriptedModel",
    "Seen",
    "Server",
    "ServerStartError",
    "StoreMachine",
    "StoreSuite",
    "Turn",
    "Wire",
    "chat_server",
    "check_store",
    "free_port",
    "pointer_in",
    "redis_server",
    "running",
    "s3_server",
    "store_machine",
    "wire_to",
]
