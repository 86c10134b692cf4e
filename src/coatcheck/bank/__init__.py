"""The bank: puts a value whole, shows little of it, reads on."""

from ._bank import Bank
from ._blocking import BlockingBank
from ._handles import Handles, Work
from ._keys import is_name
from ._open import open_bank, store_at
from ._stored import StoredValidator
from ._stream import Stream
from ._threads import in_daemon_thread, portal, work_on
from ._typed import as_found, as_text, fit, fit_stored, parsed

__all__ = [
    "Bank",
    "BlockingBank",
    "Handles",
    "StoredValidator",
    "Stream",
    "Work",
    "as_found",
    "as_text",
    "fit",
    "fit_stored",
    "in_daemon_thread",
    "is_name",
    "open_bank",
    "parsed",
    "portal",
    "store_at",
    "work_on",
]
