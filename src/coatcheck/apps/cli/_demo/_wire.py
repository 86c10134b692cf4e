"""The outcome of a demo as one JSON document."""

from ._run import WINDOWS, Outcome


def outcome_wire(outcome: Outcome, *, skipped_files: int) -> dict[str, object]:
    """Return what a demo showed and measured; `raw` is computed, not sent to any model."""
    return {
        "model": "scripted",
        "messages": list(outcome.messages),
        "rawAnswer": outcome.raw_answer,
        "calls": [
            {"action": call.action, "tokens": call.tokens, "rawTokens": call.raw_tokens}
            for call in outcome.calls
        ],
        "tokens": outcome.tokens,
        "rawTokens": outcome.raw_tokens,
        "rawTokensOnce": outcome.raw_tokens_once,
        "windows": [
            {
                "tokens": window,
                "overflowsAtCall": outcome.overflows_at(window, raw=False),
                "rawOverflowsAtCall": outcome.overflows_at(window, raw=True),
            }
            for window in WINDOWS
        ],
        "seconds": round(outcome.seconds, 3),
        "pointers": list(outcome.pointers),
        "skippedFiles": skipped_files,
    }
