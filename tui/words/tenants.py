"""The figures of the Tenants page, in plain words."""

from __future__ import annotations

from .live import TERMS as LIVE

SHARED = (
    *("window", "GPU %", "m$/1k", "+idle", "1k out", "ms/1k", "budget", "idle", "overhead", "underfill", "unobserved"),
    "– and n/a",
)
"""Terms that mean here what they mean on the Live page."""

TERMS: tuple[tuple[str, str], ...] = (
    (
        "in/s, out/s",
        "Prompt and output tokens per second; cached: the part of the prompts served from the prefix cache.",
    ),
    (
        "cached 0 %",
        (
            "Nothing was found in the prefix cache. Prompts may not begin alike, or only by less than one KV block "
            "(vLLM: 16 tokens, hybrid models several hundred): it does not mean that caching is off."
        ),
    ),
    ("trend", "GPU time of the tenant over the window, in ten parts, against its own highest."),
    ("$/h", "What an hour like this window costs the tenant, without idle time."),
    ("prompts, decoding", "What the tenant's GPU time went into."),
    ("in the queue", "Time from arrival to the first step. It costs nothing."),
    (
        "stop, length …",
        "Why requests ended: a stop token, the limit, hung up (abort), an error, or never let on (rejected).",
    ),
    ("s or S", "Sort by the next column, or the one before. The app remembers it."),
    ("/", "Show only tenants with these letters in their name; Esc shows all again. No amount changes by it."),
    ("Enter, Esc", "Open the tenant under the cursor; go back."),
    *(pair for pair in LIVE if pair[0] in SHARED),
)
