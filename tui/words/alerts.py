"""What the Alerts page looks for, in plain words."""

from __future__ import annotations

TERMS: tuple[tuple[str, str], ...] = (
    ("now, soon", "now: something is lost, stalls or costs twice; soon: it will, or money is spent on nothing."),
    ("why", "The figures of the last minute that say so. An alert without a cause is never shown."),
    ("put off", "Preemption: a rider lost its KV blocks. Its rows are computed again, which is overhead on the bill."),
    ("KV memory", "Requests wait although seats are free, because the KV cache is (nearly) all in use."),
    ("starves", "Steps that computed one prompt and nobody's next token, for a second or more in a row."),
    ("kept small", "A cap on co-riders (fast mode) stopped others from boarding while they waited."),
    ("batch of 1", "Steps ran most of the time with hardly anybody on board: there are too few requests at once."),
    ("idle", "The engine was up and ran nothing for more than half of the window."),
    ("budget", "A team is above a limit, or will be within its period at the pace since its start."),
    (
        "source down",
        "A page, spool or device that is not read. What it would tell is unobserved: not idle, and not zero.",
    ),
    ("without price", "The price list has no entry for a model and tier that ride; totals over them are lower bounds."),
)
