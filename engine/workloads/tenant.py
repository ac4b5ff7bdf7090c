"""The tenant of a trace whose rows name none."""

import re
from pathlib import Path

_WORDS = re.compile(r"[^\W_]+")


def tenant_of(path: str | Path) -> str:
    """The last word of the file's name: `AzureLLMInferenceTrace_conv.csv` is the traffic of "conv"."""
    stem = Path(path).stem
    words = _WORDS.findall(stem)
    return words[-1] if words else stem
