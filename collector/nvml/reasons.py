"""Why NVML did not answer, in plain words."""

from __future__ import annotations

from typing import NamedTuple


class Missing(NamedTuple):
    """A value that could not be read: NVML's name for the error, and what that means."""

    code: str
    why: str


_WHY = {
    "NOT_SUPPORTED": "not supported by this device",
    "NO_PERMISSION": "not permitted: run with more rights, or share the whole device with the container",
    "GPU_IS_LOST": "GPU is lost (it fell off the bus): reset it or reboot the host, and look for Xid in its kernel log",
    "RESET_REQUIRED": "GPU requires a reset: run `nvidia-smi --gpu-reset` or reboot the host",
    "UNKNOWN": "unknown driver error: in a container, restart the container; on a host, look into its kernel log",
    "UNINITIALIZED": "NVML was shut down",
    "TIMEOUT": "the driver did not answer in time",
    "DRIVER_NOT_LOADED": "NVIDIA's driver is not loaded: load it (`modprobe nvidia`) or reboot",
    "LIBRARY_NOT_FOUND": "no NVML library (libnvidia-ml.so.1), or only the stub of the CUDA toolkit: install NVIDIA's "
    "driver; in a container, start it with GPUs (`--gpus all`)",
    "LIB_RM_VERSION_MISMATCH": "NVIDIA's driver was updated while its older kernel module is still loaded: reboot the "
    "host, or reload the module",
    "FUNCTION_NOT_FOUND": "not known to this driver: a newer one may tell it",
    "GPU_NOT_FOUND": "the driver finds no GPU",
    "BINDING_NOT_FOUND": "the Python package nvidia-ml-py is missing: `pip install nvidia-ml-py`",
    "UNREADABLE": "the driver's answer makes no sense",
    "ODD": "the energy counter jumped: this reading is not counted",
    "SLICE": "a MIG slice has none of its own: see its device",
    "UNLISTED": "GPU is lost (the driver does not list it any more): reset it or reboot the host",
}
LOST = frozenset({"GPU_IS_LOST", "RESET_REQUIRED", "UNLISTED"})
"""What is wrong with one device, and not with the driver."""
UNANSWERED = frozenset({"NOT_SUPPORTED", "FUNCTION_NOT_FOUND"})
"""What a device will never tell, however often it is asked."""
USUAL = UNANSWERED | {"NO_PERMISSION", "SLICE", "UNREADABLE", "ODD"}
"""What keeps single values back while a device works."""


def missing(code: str) -> Missing:
    """The error of that name with what it means; names without words of their own are given as they are."""
    return Missing(code, _WHY.get(code) or f"the driver answers {code.lower().replace('_', ' ')}")
