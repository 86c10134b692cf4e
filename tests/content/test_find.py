"""How a needle is found: each way finds the same."""

from itertools import accumulate, count

from hypothesis import given
from hypothesis import strategies as st

from coatcheck.content._find import AsciiFinder

FOLDING = "sSßẞſkK\u212afiﬁﬀﬃﬆİıI\u0307tTẗẖﬄŉnjJǰhж中😀 \n\ud83d\udc00"


def expected(text: str, needle: str) -> list[tuple[int, int]]:
    """Return where hits are in bytes, by definition: whose each folded character is."""
    owners = [at for at, char in enumerate(text) for _ in char.casefold()]
    folded, wanted = text.casefold(), needle.casefold()
    places = list(accumulate((len(bytes_of(char)) for char in text), initial=0))
    hits: list[tuple[int, int]] = []
    at = folded.find(wanted)
    while at >= 0:
        stop = owners[at + len(wanted) - 1] + 1
        hits.append((places[owners[at]], places[stop]))
        at = folded.find(wanted, len(text[:stop].casefold()))
    return hits


def bytes_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@given(
    needle=st.text(st.sampled_from("sStTfiIkKnjh \u212a"), min_size=1, max_size=3),
    texts=st.lists(st.text(st.sampled_from(FOLDING), max_size=40)),
)
def test_a_word_of_ascii_is_found_the_same_after_the_usual_way_was_slow(
    needle: str, texts: list[str]
) -> None:
    seconds = count()
    finder = AsciiFinder(needle, lambda: float(next(seconds)))

    for text in ["x", "y", "z", *texts]:
        hits = [
            hits.span(number)
            for hits in finder.find(memoryview(bytes_of(text)))
            for number in range(len(hits))
        ]
        assert hits == expected(text, needle)
