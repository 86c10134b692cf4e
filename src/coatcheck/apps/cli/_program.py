"""The whole program: the application, with every command added."""

from . import (
    _commands,
    _demo_command,
    _doctor_command,
    _gc_command,
    _journal_commands,
    _migrate_command,
    _proxy_command,
    _query_command,
)
from ._app import app

__all__ = ["app", "commands"]

commands = (
    _commands,
    _query_command,
    _migrate_command,
    _gc_command,
    _journal_commands,
    _proxy_command,
    _doctor_command,
    _demo_command,
)
"""Their import adds what they hold to `app`."""
