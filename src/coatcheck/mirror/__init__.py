"""Mirrored tools: pointers in, envelopes out, and the tool in between runs unchanged."""

from ._call import ModelCall, calling
from ._definition import definition
from ._functions import background, mirror
from ._mirror import Mirror
from ._parameters import Verbatim, with_verbatim_marks
from ._slots import holds_pointer
from ._turn import ToolResult

__all__ = [
    "Mirror",
    "ModelCall",
    "ToolResult",
    "Verbatim",
    "background",
    "calling",
    "definition",
    "holds_pointer",
    "mirror",
    "with_verbatim_marks",
]
