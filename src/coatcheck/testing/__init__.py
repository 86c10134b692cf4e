"""Tests that others inherit to prove their own parts, and what such tests need.

Needs pytest and hypothesis. Nothing of Coatcheck outside of tests imports it.
"""

from ._capabilities import Advance
from ._clock import ManualClock
from ._machine import StoreMachine, store_machine
from ._stores import StoreSuite

__all__ = ["Advance", "ManualClock", "StoreMachine", "StoreSuite", "store_machine"]
