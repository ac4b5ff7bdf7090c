"""The figures of the Live page, in plain words."""

from __future__ import annotations

TERMS: tuple[tuple[str, str], ...] = (
    (
        "window",
        (
            "Figures are over the last 60 seconds before the newest thing the engine told. The clock at the top is "
            "that moment (UTC), so an engine in virtual time, or one that ended, shows its own last minute."
        ),
    ),
    ("riding", "Sequences in the newest step, of the seats there are (max_num_seqs). Time-line: mean per second."),
    ("waiting", "Requests in the queue, not on board yet. Queue time costs nothing."),
    ("KV cache", "Part of the KV blocks in use. When it is full, riders are put off although seats are free."),
    (
        "preempted",
        "Sequences put off the batch for lack of KV blocks. Their work is done again and booked as overhead.",
    ),
    ("rejected", "Requests that could never fit, and were refused."),
    (
        "tokens/s",
        (
            "in: prompt tokens, computed or served from the prefix cache. cached: the part of them that was served. "
            "out: tokens generated."
        ),
    ),
    ("step", "Mean length of one iteration of the engine. Every rider gets its next token once per step."),
    ("prefill", "Part of the busy time that prompts caused; decode is the rest."),
    (
        "TTFT",
        "Time to first token, from arrival, of the requests that finished in the window: median and 99th percentile.",
    ),
    ("per token", "Time between a request's output tokens, after the first (ITL): median and 99th percentile."),
    ("batch", "How much of the busy time was spent with so many riders on board."),
    ("no step", "Part of the wall time in which the engine was up and ran nothing: nobody rode."),
    ("empty seats", "Seats that were empty while steps ran, weighted by time."),
    (
        "compute idle",
        (
            "Arithmetic that the GPUs could have done during steps and did not, against the datasheet. Decoding "
            "waits for memory, so this is high even when the batch is full."
        ),
    ),
    ("bandwidth", "Memory traffic of the steps against the datasheet. Near its peak, more riders are nearly free."),
    ("cost", "The rate times the GPUs: what an hour like this minute costs, split by who owned the GPU time."),
    ("riders", "Steps, shared among those on board by what each of them added to the step."),
    ("idle", "The engine was up and no step ran."),
    ("overhead", "Loading the model, and work done twice after a preemption."),
    ("underfill", "Emptiness of a batch that was kept small on purpose."),
    ("unobserved", "Time that no event accounts for. It is shown, not guessed."),
    (
        "batching",
        (
            "What 1000 tokens, in and out, cost now by busy time, and what they would cost alone: the same rows one "
            "request after the other, by the run's step model. An estimate: prompts are taken in the chunks in which "
            "they came. m$ are thousandths."
        ),
    ),
    ("GPU %", "Part of all GPU time of the window. Tenants, idle and the other lines make 100."),
    (
        "m$/1k",
        "Thousandths of a dollar per 1000 tokens, in and out: the same number as dollars per million. Busy time only.",
    ),
    ("+idle", "The same with idle time added to every tenant in proportion to its busy time."),
    ("1k out", "Busy cost per 1000 output tokens, in the unit of the columns before."),
    (
        "budget",
        (
            "Part of the hard limit (without one, of the soft limit) that the tenant's team has spent in the "
            "budget's period. ▲: above the soft limit, in red above the hard one. A line under the table tells the "
            "worst budget that is above a limit, or will be within its period at the pace since its start. The "
            "recorder looks once a minute. farebox explain STORE 2026-09 2026-10 says why a period cost more than "
            "the one before, farebox report STORE --by team who pays, farebox budgets set STORE changes a limit."
        ),
    ),
    ("ms/1k", "Without a rate: GPU milliseconds per 1000 tokens. Set a rate to see money."),
    ("(fast) (batch)", "The tier a tenant rode in, when it is not the standard one."),
    ("– and n/a", "Not known, or nothing there to divide by. Farebox never shows 0 for something it does not know."),
)
