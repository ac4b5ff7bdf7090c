"""The figures of the Batch page, in plain words."""

from __future__ import annotations

TERMS: tuple[tuple[str, str], ...] = (
    (
        "seat",
        (
            "One sequence in the step. The letter and colour say whose it is, the list below says which. · is an "
            "empty seat: it costs nearly as much as a taken one. ? is a sequence on board that had no row in this "
            "step."
        ),
    ),
    ("fill", "How long the seat is taken, against the longest rider; f: how much context (KV blocks) instead."),
    ("+ and »", "Just got on; rides in fast mode, which keeps others off the batch."),
    ("got on, off", "Who boarded with this step, and who left before it: finished, hung up, or put off the batch."),
    (
        "oldest, newest",
        (
            "Since when the longest and the newest rider of a tenant sit. ≥: at least. A store keeps how many of "
            "each tenant ride in a step, and each request when it ends: until then the longest rider is taken to be "
            "the one who leaves, and who sat there before the watch began has sat longer than is known."
        ),
    ),
    ("blocks", "KV blocks that one rider of this tenant holds, on average: its context."),
    ("rows", "Token rows that the tenant computed in the step: one per decode, a chunk per prompt."),
    ("step %", "The part of the step's GPU time that the tenant pays, by the bill's own rule."),
    ("riders, ms", "The last steps, one column each: how many rode, and how long the step took."),
    ("← → or h l", "Hold the figures and walk through the last steps; Shift: ten at a time. End: the newest."),
)
