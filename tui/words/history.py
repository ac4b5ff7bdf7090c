"""The figures of the History page, in plain words."""

from __future__ import annotations

TERMS: tuple[tuple[str, str], ...] = (
    (
        "riders %",
        "Part of the GPU time that steps with riders took, by the ledger's minutes. idle %: the engine was up.",
    ),
    ("unobserved %", "Time for which no event arrived; there is no line when there was none."),
    ("tokens", "Prompt and output tokens, against the highest column. requests: those that ended."),
    ("GPU·s", "GPU time in seconds. Page 6 says what it costs."),
    ("was …", "The same of the window that was marked with m."),
    ("← →", "Earlier, later, by a quarter of the window. + and -: zoom. 0: all there is. r: read the store again."),
    ("m", "Mark this window, to compare others with it; again: compare no more."),
    (
        "Enter",
        (
            "Replay: all pages show what happened from the left edge of the window on, from the same records. > and "
            "< make it faster and slower (1 to 100 times), p holds it, n goes back to now."
        ),
    ),
)
