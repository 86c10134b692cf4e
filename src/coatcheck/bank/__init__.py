"""The bank: puts a value whole, shows little of it, reads on."""

from ._bank import Bank
from ._blocking import BlockingBank
from ._keys import is_name
from ._open import open_bank, store_at
from ._threads import portal, work_on
from ._typed import as_text, fit, parsed, readings

__all__ = [
    "Bank",
    "BlockingBank",
    "as_text",
    "fit",
    "is_name",
    "open_bank",
    "parsed",
    "portal",
    "readings",
    "store_at",
    "work_on",
]
