"""A run: one engine process, from start to end."""

from typing import Annotated, Literal, NamedTuple

from .table import Table, col

Clock = Literal["real", "virtual"]


class Run(NamedTuple):
    """One engine process on its GPUs. `(engine_id, run_id)` identifies it; heartbeat and end move while it lives.

    A virtual run follows the step model's clock instead of measuring, so its step times are the model's own.
    """

    engine_id: Annotated[str, col("", "the engine: one replica of a served model")]
    run_id: Annotated[str, col("", "one process of that engine; for virtual runs a hash of inputs and flags")]
    host: Annotated[str, col("", "host that the engine runs on")]
    gpu_type: Annotated[str, col("", "GPU type, as `roofline` spells it")]
    gpu_uuids: Annotated[tuple[str, ...], col("", "the devices; empty when none is attached")]
    gpus: Annotated[int, col("GPUs", "GPUs of the replica (tensor parallel size)")]
    model: Annotated[str, col("", "model, as `roofline` spells it")]
    weights: Annotated[str, col("", "weight format: bf16, fp8, int8 or int4")]
    mode: Annotated[str, col("", "scheduling mode: continuous, static or none")]
    max_num_seqs: Annotated[int | None, col("sequences", "seats: the most sequences of one step; null: not known")]
    max_num_batched_tokens: Annotated[int | None, col("tokens", "the most token rows that one step may compute")]
    block_bytes: Annotated[int | None, col("bytes", "size of one KV block over all GPUs of the replica")]
    kv_blocks: Annotated[int | None, col("blocks", "KV blocks of the replica")]
    step_model: Annotated[str | None, col("", "the step model's constants, as JSON")]
    clock: Annotated[str, col("", "real (measured) or virtual (the step model's own time)")]
    started_ns: Annotated[int, col("UTC ns", "start")]
    load_ns: Annotated[int, col("ns", "time from the start until the model was loaded; it is overhead")]
    heartbeat_ns: Annotated[int, col("UTC ns", "everything before this instant has been told")]
    ended_ns: Annotated[int | None, col("UTC ns", "end; null while it lives or when it was lost")]
    engine_args: Annotated[str | None, col("", "how else it schedules, as JSON; null: not told")] = None

    @property
    def wall_end_ns(self) -> int:
        """End of the run's wall clock: its end, or its last heartbeat."""
        return self.heartbeat_ns if self.ended_ns is None else self.ended_ns


RUNS = Table("runs", Run, key=("engine_id", "run_id"), time="started_ns", sort=("engine_id", "started_ns"))
