"""Which artifacts a mistyped pointer or name may have meant."""

from collections.abc import Iterable
from difflib import SequenceMatcher

from ..records import Artifact, names_pointer

_NAMED = 5
_MEASURED = 8
_LONGEST_COMPARED = 60


def most_alike(text: str, artifacts: Iterable[Artifact]) -> list[Artifact]:
    """Return at most 5 artifacts. Only 8 are measured exactly, which takes up to 1 ms each.

    Those are told by the runs of three characters that they share with `text`: of ids, which have
    digits only, the characters alone tell little.
    """
    if names_pointer(text):
        text = text.partition("#")[0]
    wanted = _runs(text)
    matcher = SequenceMatcher(None, b=text[:_LONGEST_COMPARED])

    def shared(known: str) -> tuple[float, float]:
        matcher.set_seq1(known[:_LONGEST_COMPARED])
        return len(wanted & _runs(known)), matcher.quick_ratio()

    def exact(known: str) -> float:
        matcher.set_seq1(known[:_LONGEST_COMPARED])
        return matcher.ratio()

    likely = sorted(artifacts, key=lambda each: max(map(shared, _called(each))), reverse=True)
    return sorted(likely[:_MEASURED], key=lambda each: -max(map(exact, _called(each))))[:_NAMED]


def _called(artifact: Artifact) -> tuple[str, str]:
    return artifact.pointer, artifact.name or artifact.pointer


def _runs(text: str) -> set[str]:
    """Return the runs of three characters in a text, those at its beginning among them."""
    text = f"  {text[:_LONGEST_COMPARED]}"
    return {text[at : at + 3] for at in range(len(text) - 2)}
