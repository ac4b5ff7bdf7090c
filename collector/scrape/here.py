"""What this machine shows of an engine that runs on it."""

from __future__ import annotations

import time
from dataclasses import replace

from .fetch import Target
from .setup import LOCAL, Setup


def with_local_gpus(setup: Setup, target: Target) -> Setup:
    """The setup with this machine's GPUs, where the engine runs here and the setup says nothing of them.

    Of several devices nobody knows which are the engine's: then only their type is taken, if it is one.
    """
    if setup.gpu is not None or target.host not in LOCAL:
        return setup
    from ..nvml.watch import GpuWatch

    watch = GpuWatch()
    try:
        samples = [s for s in watch.poll(time.time_ns()).samples if s.parent_uuid is None and s.name]
    finally:
        watch.close()
    if len({sample.name for sample in samples}) != 1:
        return setup
    if len(samples) > 1:
        return replace(setup, gpu=samples[0].name)
    return replace(setup, gpu=samples[0].name, gpus=setup.gpus or 1, gpu_uuids=(samples[0].gpu_uuid,))
