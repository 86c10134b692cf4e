"""Values with a payload of their own, arrays and frames: what they are stored as, and come back."""

from ..records import dataclass
from ._arrays import (
    ARRAY_ROWS,
    NPY_TYPE,
    NpyPayload,
    array_size,
    array_text_bound,
    is_array,
    load_array,
    plain_array,
    read_only,
)
from ._frame_rows import frame_text_bound, rows_of
from ._frames import (
    ARROW_TYPE,
    FRAME_ROWS,
    POLARS_ROWS,
    encode_frame,
    frame_form,
    frame_shape,
    load_frame,
)
from ._index import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabular:
    """An array or a frame, and what is stored of it."""

    value: object
    """What is handed on: of an array a view that cannot be changed."""
    form: str
    content_type: str
    payload: bytes | NpyPayload
    rows: Rows


def is_tabular(value: object) -> bool:
    """Return whether `value` is an array or a frame; imports nothing."""
    return is_array(value) or frame_form(value) is not None


def tabular(value: object, *, owned: bool) -> Tabular:
    """Return an array or a frame as it is stored.

    Raises:
        UnencodableValueError: It would not come back equal.
    """
    form = frame_form(value)
    if form is not None:
        return Tabular(
            value=value,
            form=form,
            content_type=ARROW_TYPE,
            payload=encode_frame(value, form),
            rows=Rows(
                format=POLARS_ROWS if form.startswith(POLARS_ROWS) else FRAME_ROWS,
                count=frame_shape(value)[0],
            ),
        )
    array = NpyPayload(value)
    payload = array if owned else array.whole()
    return Tabular(
        # Of one that is not ours, what is stored and what is handed on are the same copy.
        value=read_only(value) if isinstance(payload, NpyPayload) else load_array(payload),
        form=ARRAY_ROWS,
        content_type=NPY_TYPE,
        payload=payload,
        rows=Rows(format=ARRAY_ROWS, count=array.rows),
    )


def load_tabular(payload: bytes, form: str) -> object:
    """Return the array or frame of a payload.

    Raises:
        ValueError: The payload is damaged.
        InvalidArgumentError: The library that it takes is not installed.
    """
    return load_array(payload) if form == ARRAY_ROWS else load_frame(payload, form)


def is_tabular_form(form: str) -> bool:
    """Return whether a payload of this form is an array or a frame."""
    return form == ARRAY_ROWS or form.startswith(FRAME_ROWS)


def tabular_size(value: object) -> int:
    """Return the bytes of the payload of an array or a frame."""
    if is_array(value):
        return array_size(value)
    return len(encode_frame(value, frame_form(value) or ""))


def text_bound(value: object, limit_bytes: int) -> int:
    """Return a number of bytes that the value as JSON does not exceed, or one over the limit."""
    return array_text_bound(value) if is_array(value) else frame_text_bound(value, limit_bytes)


def plain_rows(value: object) -> object:
    """Return an array as nested lists, a frame as a list of objects, any other value as it is."""
    if is_array(value):
        return plain_array(value)
    return value if frame_form(value) is None else rows_of(value)
