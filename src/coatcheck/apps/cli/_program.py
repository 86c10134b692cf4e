"""The whole program: the application, with every command added."""

from . import _commands, _demo_command, _doctor_command, _journal_commands, _migrate_command
from ._app import app

__all__ = ["app", "commands"]

commands = (_commands, _demo_command, _doctor_command, _journal_commands, _migrate_command)
"""Their import adds what they hold to `app`."""
