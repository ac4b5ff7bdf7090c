"""The figures of the Bill page, in plain words."""

from __future__ import annotations

TERMS: tuple[tuple[str, str], ...] = (
    (
        "total",
        "What the period costs: declared capacity, or else the runs' walls, times the rates. No key below moves it.",
    ),
    (
        "d, ← →",
        "All time, UTC months or UTC days; the period before and after. farebox report has other zones.",
    ),
    ("b", "Group lines by tenant, team, tenant and tier, model, engine, GPU type, tenant and day, or day."),
    (
        "i: idle",
        (
            "Who pays for idle time: nobody, it is a line of its own (separate); tenants by busy time (weighted), by"
            " head (even), or for what they reserved and did not use (reservation)."
        ),
    ),
    (
        "o: policy",
        (
            "How the riders of a step share its time: by the roofline (the bill), by heads (sequence), by rows "
            "(tokens), output rows double (weighted_tokens), or the Shapley value (an audit). Others than the bill's"
            " own split the stored steps again, which takes a while."
        ),
    ),
    ("with idle", "The amount with the tenant's part of idle time."),
    ("…/1k", "Per 1000 prompt and output tokens, of busy time; with idle; per 1000 output tokens."),
    ("no price", "Nobody told what that costs. It is never taken for 0, and a total over it is a lower bound (≥)."),
    ("unobserved", "Time for which no event arrived. It is paid for and shown, not guessed away."),
    ("e", "Write the bill to a new file; its ending says the format: .csv, .json, .html or .parquet."),
    ("x", "Say why the bill differs from that of the period before: volume, lengths, tiers, batch sizes, idle, rates."),
)
