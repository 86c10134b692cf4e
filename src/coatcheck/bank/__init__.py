"""The bank: puts a value whole, shows little of it, reads on.

`migration`, `savings` and `sql` are imported by their own names: few processes need them.
"""

from ._bank import Bank
from ._blocking import BlockingBank, bank_of
from ._cells import Cells
from ._handles import Handles, Work
from ._journal import TOOL, Call, Journal, parse_call, read_journal
from ._keys import is_name
from ._lifetimes import Usage
from ._open import folder_at, is_begun, open_bank, store_at, without_secrets
from ._run import Run
from ._stored import StoredValidator
from ._stream import PLAIN_TYPES, Stream
from ._threads import in_daemon_thread, portal, work_on
from ._typed import as_found, as_text, fit, fit_stored, misfit, parsed, structured

__all__ = [
    "PLAIN_TYPES",
    "TOOL",
    "Bank",
    "BlockingBank",
    "Call",
    "Cells",
    "Handles",
    "Journal",
    "Run",
    "StoredValidator",
    "Stream",
    "Usage",
    "Work",
    "as_found",
    "as_text",
    "bank_of",
    "fit",
    "fit_stored",
    "folder_at",
    "in_daemon_thread",
    "is_begun",
    "is_name",
    "misfit",
    "open_bank",
    "parse_call",
    "parsed",
    "portal",
    "read_journal",
    "store_at",
    "structured",
    "without_secrets",
    "work_on",
]
