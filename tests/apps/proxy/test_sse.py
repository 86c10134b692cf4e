from hypothesis import given
from hypothesis import strategies as st

from coatcheck.apps.proxy._sse import KEEP_ALIVE, Event, EventReader, event_of

LINES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1)


@given(
    data=st.lists(LINES.map(str.encode), max_size=5),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    size=st.integers(1, 7),
)
def test_events_come_whole_however_they_are_cut(data: list[bytes], end: bytes, size: int) -> None:
    stream = b"".join(b"id: 1" + end + b"data: " + each + end + end for each in data)
    reader = EventReader()

    events: list[Event] = []
    for at in range(0, len(stream), size):
        events += reader.feed(stream[at : at + size])
    events += reader.feed(b"\n" if end == b"\r" else b"")

    assert [event.data for event in events] == data


@given(message=LINES.map(str.encode))
def test_message_that_is_written_as_an_event_is_read(message: bytes) -> None:
    (event,) = EventReader().feed(KEEP_ALIVE + event_of(message.strip() or b"{}"))

    assert event.data == (message.strip() or b"{}")


def test_message_of_several_lines_stays_one_event() -> None:
    (event,) = EventReader().feed(event_of(b'{\n  "id": 1\r\n}'))

    assert event.data == b'{\n  "id": 1\n}'


def test_pause_and_id_are_read_and_comments_passed_over() -> None:
    reader = EventReader()

    events = reader.feed(b": hello\nretry: 250\nid: a\ndata:\n\nretry: soon\ndata: {}\n\n")

    assert events == [Event(b"", "a", 250), Event(b"{}")]
