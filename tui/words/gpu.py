"""The figures of the GPU page, in plain words."""

from __future__ import annotations

TERMS: tuple[tuple[str, str], ...] = (
    (
        "busy time",
        (
            "Part of the time in which some kernel ran on the device (NVML's utilisation). 100 % means that it was "
            "never without work, not that it was full: one request alone gives 100 %. Whether there is room for "
            "more, the seats on page 1 and the bandwidth above say. With a decimal place it is DCGM's finer figure: "
            "the part in which the compute engine worked."
        ),
    ),
    (
        "memory reserved",
        (
            "Memory that processes hold. An engine reserves nearly all of it at start for its KV cache, so this says"
            " nothing of how much is used; KV cache on page 1 does. No cost is derived from it."
        ),
    ),
    (
        "KV cache 0 %",
        "Blocks of running requests only. With prefix caching, cached blocks do not count: 0 % is no fault.",
    ),
    (
        "power",
        "Drawn now, of the limit that is enforced. A low part beside 100 % busy time: the device waits for memory.",
    ),
    ("clock, temp", "Clock of the multiprocessors; temperature of the chip."),
    ("state", "ok; lost: it was seen and does not answer; stale: its readings stand still; unavailable: not readable."),
    (
        "slice",
        "A MIG slice has memory and load of its own; power, clock and temperature are its device's, counted there.",
    ),
    (
        "compute, MFU",
        "Arithmetic of the steps against the datasheet's peak (model FLOPs utilisation), while steps ran.",
    ),
    ("bandwidth, MBU", "Memory traffic of the steps against the datasheet. Near its peak more riders are nearly free."),
    (
        "intensity",
        (
            "Arithmetic per byte read. Below the balance point the device waits for memory: a bigger batch raises it"
            " and costs hardly any time. Above it every further row takes longer."
        ),
    ),
    ("shared by", "Several owners hold slices of time of one device; nobody can tell their parts of its readings."),
    (
        "n/a",
        "Could not be read; the line below the list says why, for the device under the cursor. It is never shown as 0.",
    ),
)
