"""The recorder: turns what happened into events."""

from __future__ import annotations

from ..events import PART_BITS, DecodeRun, DecodeSink, FinishReason, Request, Share, Sink, Step
from ..roofline.step_model import UNIT_BITS
from .config import EngineConfig
from .load import Load
from .schedulers.scheduler import Schedule
from .sequence import Sequence


class Recorder:
    """Tells one run to a sink: its life, its steps with their cells, and its requests.

    `told_ns` is the instant up to which all has been told, `last_end_ns` the end of the last step, or of loading.
    """

    def __init__(self, config: EngineConfig, sink: Sink, started_ns: int, load_ns: int = 0) -> None:
        self.told_ns = started_ns
        self.steps = 0
        self._config = config
        self._usable_blocks = config.usable_blocks
        self._sink = sink
        self._leap_sink = sink if isinstance(sink, DecodeSink) else None
        self._run = config.run(started_ns, load_ns)
        self.last_end_ns = started_ns + load_ns
        sink.run(self._run)

    @property
    def can_leap(self) -> bool:
        """Whether the sink takes runs of decode steps."""
        return self._leap_sink is not None

    def heartbeat(self, now_ns: int) -> None:
        """Tell that nothing happened up to now beyond what was told."""
        self.told_ns = now_ns
        self._sink.run(self._run._replace(heartbeat_ns=now_ns))

    def end(self) -> None:
        """Tell that the run ended with the last thing told."""
        self._sink.run(self._run._replace(heartbeat_ns=self.told_ns, ended_ns=self.told_ns))

    def decodes(self, run: DecodeRun, ended_ns: int) -> None:
        """Tell a run of decode steps that ended at `ended_ns` (UTC)."""
        if self._leap_sink is None:
            raise TypeError("the sink takes no runs of decode steps")
        self._leap_sink.decodes(run)
        self.steps += run.steps
        self.told_ns = self.last_end_ns = ended_ns

    def step(self, started_ns: int, ended_ns: int, schedule: Schedule, load: Load, waiting: int) -> None:
        """Tell a step from `started_ns` to `ended_ns` (UTC) that left `waiting` requests in the queue."""
        config, model = self._config, self._config.step_model
        duration_ns = ended_ns - started_ns
        record = Step(
            config.engine_id,
            config.run_id,
            self.steps,
            started_ns,
            duration_ns,
            started_ns - self.last_end_ns,  # idle_before_ns
            config.gpus,
            None,  # prefill_ns: costing splits the duration
            None,  # decode_ns
            load.riders,
            waiting,
            load.prefill_seqs,
            load.decode_seqs,
            load.prefill_rows,
            load.decode_rows,
            load.output_tokens,
            load.cached_tokens,
            load.recomputed_rows,
            load.rejected_rows,
            load.kv_blocks,
            self._usable_blocks,
            schedule.preemptions,
            schedule.held_by,
            model.flops(load.rows, load.row_pairs),
            model.bytes_read(load.seen, load.rows),
            "step",
        )
        self._sink.step(record, self._shares(load, started_ns, duration_ns))
        self.steps += 1
        self.told_ns = self.last_end_ns = ended_ns

    def request(self, seq: Sequence, finished_ns: int, reason: FinishReason) -> None:
        """Tell that a request ended."""
        arrival = seq.arrival
        gpu_ns = (seq.gpu_units >> UNIT_BITS) * self._config.gpus
        self._sink.request(
            Request(
                request_id=arrival.request_id,
                engine_id=self._config.engine_id,
                run_id=self._config.run_id,
                tenant_id=arrival.tenant_id,
                tier=arrival.tier,
                model=self._config.model,
                arrived_ns=arrival.arrived_ns,
                scheduled_ns=seq.scheduled_ns,
                first_token_ns=seq.first_token_ns,
                finished_ns=finished_ns,
                prompt_tokens=arrival.prompt_tokens,
                cached_tokens=seq.cached_tokens,
                output_tokens=seq.num_output,
                reasoning_tokens=None,
                max_tokens=arrival.max_tokens,
                finish_reason=reason,
                preemptions=seq.num_preemptions,
                prefix_ids=arrival.prefix_ids,
                gpu_ns=gpu_ns,
            )
        )
        self.told_ns = finished_ns

    def _shares(self, load: Load, started_ns: int, duration_ns: int) -> list[Share]:
        """The cells of a step. `kv_block_ns` are floor-differences: they sum to that of all blocks used."""
        engine_id, run_id, number = self._config.engine_id, self._config.run_id, self.steps
        shares: list[Share] = []
        parts = told_block_ns = 0
        for (account, tenant_id, tier, phase), cell in sorted(load.cells.items()):
            parts += cell.block_parts
            block_ns = parts * duration_ns >> PART_BITS
            share = Share(
                engine_id,
                run_id,
                number,
                started_ns,
                account,
                tenant_id,
                tier,
                phase,
                cell.seqs,
                cell.rows,
                cell.output_tokens,
                cell.cached_tokens,
                cell.attn,
                block_ns - told_block_ns,
                None,  # gpu_ns: costing splits the step
            )
            shares.append(share)
            told_block_ns = block_ns
        return shares
