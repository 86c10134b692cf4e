"""Mirrored tools: pointers in, envelopes out, and the tool in between runs unchanged."""

from ._mirror import Mirror, mirror
from ._parameters import Verbatim

__all__ = ["Mirror", "Verbatim", "mirror"]
