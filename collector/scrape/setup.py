"""The setup: what is known of a scraped engine besides its page."""

from __future__ import annotations

import hashlib
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...events import UNKNOWN_TENANT, Run
from .fetch import Target
from .reading import Reading
from .spelling import FLAGS, Spelling

if TYPE_CHECKING:
    from ...roofline import StepModel

UNKNOWN_GPU = "unknown"
LOCAL = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


@dataclass(frozen=True)
class Setup:
    """What the configuration says, or this machine shows; None: it is not known."""

    engine_id: str | None = None
    host: str | None = None
    gpu: str | None = None
    """GPU type, in any usual spelling."""
    gpus: int | None = None
    """GPUs of all of the page's data-parallel engines together."""
    gpu_uuids: tuple[str, ...] = ()
    model: str | None = None
    """The model's name where the page's is none that `roofline` knows."""
    weights: str = "bf16"
    max_num_seqs: int | None = None
    tenant_id: str = UNKNOWN_TENANT
    """Who gets what no usage is known of."""
    spelling: Spelling = FLAGS

    def name(self, target: Target) -> str:
        """The engine's id: the configured one, else host and port."""
        return self.engine_id or target.place.partition("://")[2]

    def unknown(self, reading: Reading) -> list[str]:
        """What has to be said so that money and estimates can be right."""
        told: list[str] = []
        if self.gpu is None and reading.engine.has_gpus:
            told.append(f"the GPU type is not known ({self.spelling.gpu}): no price, and no estimate of busy time")
        if self.gpus is None and reading.engine.has_gpus:
            told.append(f"the number of GPUs is not known ({self.spelling.gpus}): it is counted as one")
        return told

    def step_model(self, reading: Reading) -> StepModel | None:
        """The step model of the replica; None where GPU or model are not known."""
        from ...roofline import Replica, SpecError, gpu, model

        name = self.model or reading.model
        if self.gpu is None or name is None:
            return None
        try:
            return Replica(gpu(self.gpu), model(name), self.weights, self.gpus or 1).step_model()
        except SpecError:
            return None

    def run(self, target: Target, reading: Reading, started_ns: int, step_model: StepModel | None) -> Run:
        """The record of a process that was first seen at an instant."""
        engine_id = self.name(target)
        identity = f"{target.url.partition('?')[0]}\n{engine_id}\n{started_ns}"
        return Run(
            engine_id=engine_id,
            run_id=hashlib.sha256(identity.encode()).hexdigest()[:16],
            host=self.host or _host(target.host),
            gpu_type=_gpu_name(self.gpu) if reading.engine.has_gpus else "none",
            gpu_uuids=self.gpu_uuids,
            gpus=(self.gpus or 1) if reading.engine.has_gpus else 0,
            model=self.model or reading.model or f"unnamed ({target.place})",
            weights=self.weights,
            mode=reading.engine.name,
            max_num_seqs=self.max_num_seqs or reading.facts.get("seats"),
            max_num_batched_tokens=None,
            block_bytes=None,
            kv_blocks=reading.facts.get("kv_blocks"),
            step_model=None if step_model is None else step_model.to_json(),
            clock="real",
            started_ns=started_ns,
            load_ns=0,
            heartbeat_ns=started_ns,
            ended_ns=None,
        )


def _host(name: str) -> str:
    return socket.gethostname() if name in LOCAL else name


def _gpu_name(name: str | None) -> str:
    """The type as `roofline` spells it; another one as it came."""
    from ...roofline import SpecError, gpu

    if name is None:
        return UNKNOWN_GPU
    try:
        return gpu(name).name
    except SpecError:
        return name
