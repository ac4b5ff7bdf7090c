"""An interval: what a scraped engine's counters and gauges said between two looks at its page."""

from typing import Annotated, NamedTuple

from .table import Table, col


class Interval(NamedTuple):
    """The time between two scrapes of one engine. It is one pseudo-step of its run too, under the same `step_seq`.

    Counters are differences between the two scrapes, gauges are those of the second. Null: the page does not say, and
    `missing` tells why.
    """

    engine_id: Annotated[str, col("", "the engine")]
    run_id: Annotated[str, col("", "the run of the engine")]
    step_seq: Annotated[int, col("", "number of the pseudo-step that stands for it")]
    started_ns: Annotated[int, col("UTC ns", "the first scrape")]
    duration_ns: Annotated[int, col("ns", "time between the two scrapes")]
    running: Annotated[int | None, col("sequences", "sequences on board at the second scrape")]
    waiting: Annotated[int | None, col("sequences", "requests in the queue at the second scrape")]
    kv_ppm: Annotated[tuple[int, ...] | None, col("10⁻⁶", "KV cache in use, one value per data-parallel engine")]
    prompt_tokens: Annotated[int | None, col("tokens", "prompt tokens, cached ones included")]
    cached_tokens: Annotated[int | None, col("tokens", "prompt tokens served from the prefix cache")]
    output_tokens: Annotated[int | None, col("tokens", "tokens generated")]
    requests: Annotated[int | None, col("requests", "requests that ended")]
    preemptions: Annotated[int | None, col("sequences", "sequences put off the batch for lack of KV blocks")]
    busy_ns: Annotated[int | None, col("ns", "time in steps, from the engine's own clock")]
    histograms: Annotated[str | None, col("", "latency buckets as JSON: name → [[upper bound in s, count], …]")]
    missing: Annotated[str | None, col("", "what the page does not have, as JSON: column → reason")]

    @property
    def kv_part(self) -> float | None:
        """Part of the KV cache in use, 0…1, the fullest engine's; None: not known."""
        return max(self.kv_ppm) / 1e6 if self.kv_ppm else None


INTERVALS = Table(
    "intervals",
    Interval,
    key=("engine_id", "run_id", "step_seq"),
    time="started_ns",
    sort=("engine_id", "started_ns"),
)
