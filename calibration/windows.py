"""Windows: which steps of a replay made up a request's wait for its first token, and its decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .recorded import RecordedRequest
from .replayed import Replayed

LONGEST_PROMPT = 6
"""Steps from its scheduling to its first token, up to which a request tells how long prompts take."""


@dataclass(frozen=True)
class Windows:
    """Ranges of steps [first, end) of a replay, and how long they took in the recording (ns)."""

    first: NDArray[np.int64]
    end: NDArray[np.int64]
    recorded_ns: NDArray[np.float64]

    def sums(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over each window's steps of float64[steps, k]: float64[windows, k]."""
        total = np.concatenate([np.zeros((1, columns.shape[1])), np.cumsum(columns, axis=0)])
        return total[self.end] - total[self.first]

    def where(self, chosen: NDArray[np.bool_]) -> Windows:
        """Some of the windows."""
        return Windows(self.first[chosen], self.end[chosen], self.recorded_ns[chosen])


def decode_windows(recorded: Sequence[RecordedRequest], replayed: Replayed) -> Windows:
    """From each request's first token to its last."""
    served = replayed.served[: len(recorded)]
    first = _ends(replayed, [one.first_token_ns for one in served]) + 1
    end = _ends(replayed, [one.last_token_ns for one in served]) + 1
    windows = Windows(first, end, np.array([one.decode_ns for one in recorded], dtype=np.float64))
    return windows.where((end > first) & (windows.recorded_ns > 0))


def prompt_windows(recorded: Sequence[RecordedRequest], replayed: Replayed) -> Windows:
    """From each request's scheduling to its first token, but for those that a cold start delayed."""
    served = replayed.served[: len(recorded)]
    first = np.searchsorted(
        replayed.steps.ended_ns, np.array([one.scheduled_ns for one in served], dtype=np.int64), side="right"
    )
    end = _ends(replayed, [one.first_token_ns for one in served]) + 1
    warm_ns = recorded[0].first_token_ns
    warm = np.array([one.scheduled_ns >= warm_ns for one in recorded])
    recorded_ns = np.array([one.first_token_ns - one.scheduled_ns for one in recorded], dtype=np.float64)
    windows = Windows(first.astype(np.int64), end, recorded_ns)
    return windows.where(warm & (end > first) & (end - first <= LONGEST_PROMPT) & (recorded_ns > 0))


def _ends(replayed: Replayed, at_ns: list[int]) -> NDArray[np.int64]:
    """The numbers of the steps that end at these instants."""
    return np.searchsorted(replayed.steps.ended_ns, np.array(at_ns, dtype=np.int64)).astype(np.int64)
