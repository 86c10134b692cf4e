"""What went wrong with tables in the field, and does not here."""

import json

from coatcheck import open_bank

HEAD = '\ufeff"id","name"\r\n'
ROWS = '1,"Zoë, the ""first"""\r\n2,"line1\nline2"\r\n'
"""Two records on three lines."""
TIMES = 2_000


async def test_br_091_a_csv_export_is_counted_and_read_by_record() -> None:
    text = HEAD + ROWS * TIMES
    async with open_bank("memory:") as bank:
        artifact = await bank.put(text, content_type="text/csv")
        first = await bank.read(artifact.pointer, 0, 2, "rows")
        later = await bank.read(artifact.pointer, 2_047, 2, "rows")

        assert artifact.size_bytes > bank.limits.inline_bytes
        assert first.total == 2 * TIMES
        assert json.loads(first.content) == [
            {"id": "1", "name": 'Zoë, the "first"'},
            {"id": "2", "name": "line1\nline2"},
        ]
        assert [row["id"] for row in json.loads(later.content)] == ["2", "1"]
        assert await bank.get(artifact.pointer) == text
        assert await bank.payload(artifact.pointer) == text.encode()


async def test_br_091_the_same_export_without_a_content_type_is_a_table_too() -> None:
    async with open_bank("memory:") as bank:
        artifact = await bank.put(HEAD + ROWS * TIMES)

        assert artifact.content_type == "text/csv"
        assert (await bank.read(artifact.pointer, 0, 1, "rows")).total == 2 * TIMES
