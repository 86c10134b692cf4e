"""First glimpses: bounded, true, and not to be forged by what they tell of."""

import base64
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content import dumps
from coatcheck.content._glimpse import glimpse
from coatcheck.content._tokens import estimate_tokens
from coatcheck.records import Glimpse

NOTHING: dict[str, object] = {}
LOG = [f"2026-11-30 INFO line {number}" for number in range(1, 20_001)]


def of(
    value: object,
    content_type: str = "text/plain",
    budget: int = 150,
    *,
    is_error: bool = False,
    line_count: int | None = None,
) -> str:
    found = glimpse(
        value,
        content_type=content_type,
        size_bytes=len(value) if isinstance(value, bytes | bytearray | str) else 0,
        budget_tokens=budget,
        is_error=is_error,
        line_count=line_count,
    )
    return "" if found is None else str(found)


def lines(*replaced: tuple[int, str], end: str = "") -> str:
    found = list(LOG)
    for number, line in replaced:
        found[number - 1] = line
    return "\n".join(found) + end


def test_text_tells_its_size_its_first_error_and_its_last_line() -> None:
    text = lines((13_370, "2026-11-30 ERROR disk full"), (15_000, "ERROR later"))

    assert of(text) == (
        f"20,000 lines, {len(text):,} characters; ERROR 2, INFO 19,998; "
        "first error, line 13,370: `2026-11-30 ERROR disk full`; "
        "last line: `2026-11-30 INFO line 20000`"
    )


def test_the_reason_on_the_last_line_is_told_once() -> None:
    text = "ok\n" * 4_999 + "FAILED: 3 errors"

    assert of(text) == "5,000 lines, 15,013 characters; first error, line 5,000: `FAILED: 3 errors`"


def test_the_error_of_a_log_is_told_whole_before_its_last_line_is() -> None:
    error = "2026-11-30 08:15:23.123 ERROR [billing] charge refused: card expired, order 4815162342"
    long_lines = [
        f"2026-11-30 08:15:{at % 60:02}.000 INFO {'worker' * 9} {at}" for at in range(999)
    ]

    shown = of("\n".join([*long_lines[:700], error, *long_lines[700:]]))

    assert shown.endswith(f"first error, line 701: `{error}`")
    assert "last line" in of("\n".join(long_lines))
    assert "last 5 lines" in of("\n".join([error, *long_lines]), budget=400, is_error=True)


def test_blanks_that_lay_out_a_page_are_left_out() -> None:
    assert of("x\n" * 200 + "Page 2" + " " * 90 + "May").endswith("last line: `Page 2 … May`")
    assert of("x\n" * 200 + "a" + " " * 15 + "b").endswith(f"last line: `a{' ' * 15}b`")


def test_the_last_line_is_one_that_is_not_blank() -> None:
    assert of("line\n" * 99 + "the end\n\n  \n").endswith("last line: `the end`")
    assert of("a" + "\n" * 500) == "500 lines, 501 characters; last line: `a`"
    assert of("\n" * 500) == "500 lines, 500 characters"


@pytest.mark.parametrize(
    "line",
    [
        "ERROR x",
        "[FATAL] x",
        "level=CRITICAL",
        "Traceback (most recent call last):",
        "java.lang.NullPointerException at x",
        "ValueError: x",
        "Exception: x",
        "main.c:3: error: x",
        "panic: x",
        "FAILED: x",
    ],
)
@pytest.mark.parametrize("last", ["é", "漢", "x"])
def test_an_error_is_known_by_its_word(line: str, last: str) -> None:
    assert f"first error, line 7: `{line}`" in of(lines((7, line), (20_000, last)))


@pytest.mark.parametrize(
    "line",
    [
        *("NO_ERRORS", "error rate 0", "terror: x", "Exceptional", "TERRORS", "FATALITY"),
        *("error:", "  error: \t", "Exception for children under age 18", "no Exceptions"),
    ],
)
def test_an_error_word_within_another_is_none(line: str) -> None:
    assert "error," not in of(lines((7, line)))


def test_words_that_only_look_like_an_error_are_not_looked_at_for_ever() -> None:
    assert "error," not in of("ERRORS " * 5_000 + "\nERROR\nx")


def test_an_error_far_into_a_line_is_shown_with_what_stands_before_it() -> None:
    text = "x\n" * 200 + "y" * 5_000 + " ERROR disk full " + "z" * 5_000 + "\nend"

    assert f"line 201: …`{'y' * 79} ERROR disk full" in of(text)


@pytest.mark.parametrize("end", ["", "\n"])
def test_of_a_very_long_text_both_ends_are_searched(end: str) -> None:
    filler = "x" * 99 + "\n"
    head = filler * 40_001
    text = head + filler * 15_000 + "ERROR late\n" + filler * 5_000 + f"last{end}"

    assert "; error, line 55,002: `ERROR late`; last line: `last`" in of(text)
    assert "error, line" not in of(head + "ERROR middle\n" + filler * 20_000)


def test_lines_that_are_known_are_not_counted() -> None:
    assert of(lines(), line_count=7).startswith("7 lines, ")


def test_one_line_tells_only_how_it_ends() -> None:
    text = "x" * 1_000 + " the end"

    shown = of(text)

    assert shown.startswith("1 line, 1,008 characters; ends: …`xxx")
    assert shown.endswith(" the end`")
    assert of("x" * 1_000, budget=10) == "1 line, 1,000 characters"


def test_an_error_shows_its_last_lines() -> None:
    text = "line\n" * 500 + "a\nb\nc\nd\ne\nf"

    assert of(text, is_error=True).endswith("last 5 lines: `b` `c` `d` `e` `f`")


def test_text_that_any_preview_shows_whole_has_no_glimpse() -> None:
    assert of("x\n" * 100) == ""
    assert of("x\n" * 101) != ""


def test_escapes_and_surrogates_do_not_show() -> None:
    shown = of("x\n" * 200 + "\x1b[31mFAIL\x1b[0m \ud83d end")

    assert shown.endswith("last line: `FAIL \ufffd end`")


def test_hostile_text_cannot_forge_a_glimpse() -> None:
    shown = of("x\n" * 200 + "`; first error, line 1: `pwned\x07\r\u202e\n")

    assert shown.endswith(r"last line: `\x60; first error, line 1: \x60pwned\x07\r\u202e`")


@pytest.mark.parametrize("budget", [0, -1, 1])
def test_a_budget_that_holds_nothing_gives_no_glimpse(budget: int) -> None:
    assert of(lines(), budget=budget) == ""
    assert of([{"id": 1}], budget=budget) == ""
    assert of(b"\x89PNG\r\n\x1a\n", "image/png", budget) == ""


def rows() -> list[dict[str, object]]:
    whole: dict[str, object] = {"id": 1, "name": "n", "x": 1.5}
    part: dict[str, object] = {"id": 2, "name": "n"}
    return [whole, part] * 657 + [whole]


def test_rows_tell_their_number_and_columns() -> None:
    shown = (
        "1,315 rows, 3 columns; id int 1=658 (50%), 2=657 (50%), mean 1.49962; "
        "name str always n; x float 657 null, 1.5=658"
    )

    assert of(rows()) == shown
    assert of(dumps(rows()).decode(), "application/json") == shown
    assert of(dumps(rows()), "application/json; charset=utf-8") == shown


OUTLINES: list[tuple[object, str]] = [
    ([], "array of 0"),
    ([1, 2], "array of 2 int"),
    ((1, "a", None, True), "array of 4 (int|str|null|bool)"),
    ({}, "object of 0 keys"),
    ([{}], "array of 1 object of 0 keys"),
    ({"a b": 1, "c": [[1], [2, 3]]}, "object {`a b`: int, c: array of 2 array of 1-2 int}"),
    ([1, {"a": []}], "array of 2 (int|object {a: array of 0})"),
    ({"k" * 50: 1}, "object {`" + "k" * 40 + "`…: int}"),
    ([[[0.5] * 128] * 128] * 128, "array of 128 array of 128 array of 128 float"),
    (
        {"a": {"b": {"c": {"d": {}}}}},
        "object {a: object {b: object {c: object {d: object of 0 keys}}}}",
    ),
    (
        {"a": {"a": {"a": {"a": {"a": {"a": 1}}}}}},
        "object {a: object {a: object {a: object {a: object {a: object of 1 key}}}}}",
    ),
    ([[[[[[[1]]]]]]], "array of 1 " * 5 + "array of 1"),
]


@pytest.mark.parametrize(("value", "shown"), OUTLINES)
def test_a_value_is_outlined(value: object, shown: str) -> None:
    assert of(value) == shown


def test_keys_beyond_the_budget_are_counted() -> None:
    value = [{f"key{at}": at if at % 2 else "x" for at in range(200)}]

    assert of(value, budget=60).endswith(", key5: int, +194 more}")
    assert of(value, budget=12) == "array of 1 object of 200 keys"


def test_many_keys_to_the_same_are_told_by_what_they_hold() -> None:
    texts: dict[str, object] = {f"text number {at}": "…" for at in range(1_000)}
    routes: dict[str, object] = {f"/v1/{at}": {"get": {"id": at}} for at in range(20)}
    modules = {f"node_modules/m{at}": {"version": "1"} for at in range(21)}

    assert of(texts) == "object {`text number 0`, +999 more, each str}"
    assert of({"paths": routes | {"/v1/x": {"put": NOTHING}}}) == (
        "object {paths: object {`/v1/0`, +20 more, each object {get?: object {id: int}, "
        "put?: object of 0 keys}}}"
    )
    assert of(modules) == (
        "object {node_modules/m0, node_modules/m1, node_modules/m2, +18 more, "
        "each object {version: str}}"
    )


def test_few_keys_and_names_of_fields_are_told_one_by_one() -> None:
    few = {f"m{at}": {"version": "1"} for at in range(20)}
    fields = {f"f{at}": 1 for at in range(40)}
    mixed: dict[str, object] = {f"m{at}": NOTHING if at else "x" for at in range(300)}

    for value in (few, fields, mixed):
        assert "each" not in of(value)
        assert "m1: object" in of(value) or "f1: int" in of(value)


def test_arrays_and_objects_of_one_place_tell_their_range() -> None:
    value: object = {
        "a": [[1], [1.5, 2]],
        "b": [{"c": {"d": 1}}, {"c": NOTHING}, {"c": {"e": 1, "f": 2}}],
    }

    assert of(value) == (
        "object {a: array of 2 array of 1-2 float, "
        "b: array of 3 objects {c: object {d?: int, e?: int, f?: int}}}"
    )
    assert "b: array of 3 objects {c: object of 0-2 keys}" in of(value, budget=50)


def test_an_outline_opens_all_parts_of_a_level_before_the_next() -> None:
    deep = {f"k{at}": {"a": {"b": {"c": {"d": at}}}} for at in range(6)}

    shown = of(deep, budget=130)

    assert shown.count("{a: object") == 6
    assert 0 < shown.count("{b: object") < 6
    assert estimate_tokens(shown) <= 0.8 * 130


def test_long_data_is_named_and_never_shown() -> None:
    image = base64.b64encode(bytes(range(256)) * 4).decode()
    value = [
        {
            "a": image,
            "b": "data:image/png;base64," + image,
            "c": "word " * 100,
            "d": "data:," + image,
        }
    ]

    assert of(value) == (
        "array of 1 object {a: base64 of 1,024 bytes, "
        "b: image/png of 1,024 bytes, c: str, d: data URI of 1,374 characters}"
    )


def test_hostile_keys_cannot_forge_an_outline() -> None:
    assert of({"a: int}\n`": 1}) == r"object {`a: int}\n\x60`: int}"


def test_the_first_hundred_items_are_looked_at() -> None:
    few, many = [[{"a": 1}] * 99 + [{"b": 1}] * 2], [[{"a": 1}] * 100 + [{"b": 1}]]

    assert of(few) == "array of 1 array of 101 objects {a?: int, b?: int}"
    assert of(many) == "array of 1 array of 101 objects {a: int}"


def test_no_more_than_two_thousand_values_are_looked_at() -> None:
    wide = [{f"k{key}": at for key in range(30)} for at in range(100)]
    early, late = dict(wide[0], k0="x"), dict(wide[0], k0=None)

    shown = of([[*wide[:60], early, *wide[61:80], late, *wide[81:]]])

    assert shown.startswith("array of 1 (array of 100 objects {k0: int|str, k1: int, ")


@pytest.mark.parametrize("value", [None, True, 7, 1.5])
def test_a_scalar_has_no_glimpse(value: object) -> None:
    assert of(value, "application/json") == ""


@pytest.mark.parametrize("text", ['{"a": ' + " " * 300, "[" * 5_000, json.dumps("x" * 300)])
def test_json_that_does_not_parse_or_holds_no_structure_is_text(text: str) -> None:
    assert of(text, "application/json").startswith("1 line, ")


def jpeg(width: int, height: int) -> bytes:
    exif = b"\xff\xe1" + (2 + 300).to_bytes(2, "big") + b"e" * 300
    sides = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return b"\xff\xd8" + exif + b"\xff\xc0\x00\x11\x08" + sides + b"\x03"


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0",
            "PNG image, 640 x 480 pixels, 24 bytes",
        ),
        (jpeg(640, 480), "JPEG image, 640 x 480 pixels, 316 bytes"),
        (b"\xff\xd8\xff\xe1\x00", "JPEG image, 5 bytes"),
        (b"GIF89a\x80\x02\xe0\x01", "GIF image, 640 x 480 pixels, 10 bytes"),
        (
            b"RIFF----WEBPVP8 ----\0\0\0\x9d\x01\x2a\x80\x02\xe0\x41",
            "WebP image, 640 x 480 pixels, 30 bytes",
        ),
        (
            b"RIFF----WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0",
            "WebP image, 640 x 480 pixels, 30 bytes",
        ),
        (
            b"RIFF----WEBPVP8L----\x2f" + (639 | 479 << 14 | 1 << 28).to_bytes(4, "little"),
            "WebP image, 640 x 480 pixels, 25 bytes",
        ),
        (b"RIFF----WEBPVP8L", "WebP image, 16 bytes"),
        (b"%PDF-1.7", "PDF document, 8 bytes"),
        (b"PK\x03\x04", "ZIP archive, 4 bytes"),
        (b"\x1f\x8b\x08", "gzip data, 3 bytes"),
        (b"\0", "application/octet-stream, 1 byte"),
    ],
)
def test_bytes_tell_what_they_are(payload: bytes, shown: str) -> None:
    assert of(payload, "application/octet-stream") == shown


def test_a_content_type_that_is_none_is_quoted() -> None:
    assert of(b"\0", "x; `y`\n") == r"`x; \x60y\x60\n`, 1 byte"


def test_bytes_that_their_type_calls_text_are_read_as_text() -> None:
    assert of(lines().encode(), "text/html; charset=utf-8").startswith("20,000 lines, ")
    assert of(b"\xff" * 300, "text/csv") == "text/csv, 300 bytes"


def test_facts_are_plain_values_for_programs() -> None:
    found = glimpse(
        lines((7, "ERROR `x`"), end="\n"),
        content_type="text/plain",
        size_bytes=1,
        budget_tokens=150,
    )

    assert found is not None
    assert json.loads(json.dumps(dict(found.facts))) == {
        "format": "text",
        "lines": 20_000,
        "characters": len(lines((7, "ERROR `x`"), end="\n")),
        "lastLine": LOG[-1],
        "error": {"lineNumber": 7, "text": "ERROR `x`"},
        "levels": {"ERROR": 1, "INFO": 19_999},
        "sampled": False,
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inside: st.lists(inside, max_size=6) | st.dictionaries(st.text(), inside, max_size=6),
    max_leaves=30,
)


@given(
    value=JSON
    | st.binary()
    | st.text(st.sampled_from("aé漢\n\x1b`[ER\ud83d"), min_size=201, max_size=900),
    budget=st.integers(0, 200),
    is_error=st.booleans(),
)
def test_a_glimpse_is_valid_one_line_and_within_its_budget(
    value: object, budget: int, *, is_error: bool
) -> None:
    def once() -> Glimpse | None:
        return glimpse(
            value, content_type="x/y", size_bytes=1, budget_tokens=budget, is_error=is_error
        )

    found = once()

    if found is not None:
        assert found == once()
        assert 0 < estimate_tokens(str(found)) <= budget
        assert not {unicodedata.category(char) for char in str(found)} & {"Cc", "Zl", "Zp", "Cs"}
        assert str(found).encode()
        assert json.dumps(dict(found.facts))
