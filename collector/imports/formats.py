"""All formats, and which one a file has."""

from __future__ import annotations

from pathlib import Path

from ...errors import InputError
from . import litellm, nvidia_smi, openai_usage, plain, traces, vllm_log
from .files import beginning
from .found import Format

FORMATS: tuple[Format, ...] = (
    litellm.FORMAT,
    openai_usage.FORMAT,
    traces.AZURE,
    traces.MOONCAKE,
    nvidia_smi.FORMAT,
    plain.FORMAT,
    vllm_log.FORMAT,
)
NAMES = tuple(each.name for each in FORMATS)


def named(name: str) -> Format:
    """The format of a name."""
    return next(each for each in FORMATS if each.name == name)


def detect(path: Path) -> Format:
    """The format that a file's first records have; raises `InputError` when it is none of them."""
    if not path.is_file():
        raise InputError(f"{path}: {'is a folder; name a file' if path.is_dir() else 'no such file'}")
    begins = beginning(path)
    found = next((each for each in FORMATS if each.looks(begins)), None)
    if found is None:
        raise InputError(f"{path}: its format is not known; say it with --format: {', '.join(NAMES)}")
    return found
