"""Refusals: requests that come when no replica of their endpoint will ever be up again."""

from __future__ import annotations

from ..arrival import Arrival
from ..recorder import Recorder
from ..sequence import Sequence
from .endpoint import Endpoint
from .life import RunId, SinkFor

_RUN = -1
"""Number of the run that tells them; those that serve count from 0."""


class Refusals:
    """Tells an endpoint's refused requests as those of a run that takes no GPU time: it ends when it began."""

    def __init__(self, endpoint: Endpoint, run_id: RunId, sink_for: SinkFor) -> None:
        self._endpoint = endpoint
        self._run_id = run_id
        self._sink_for = sink_for
        self._recorder: Recorder | None = None
        self._began_ns = 0

    def tell(self, arrival: Arrival) -> None:
        """Tell that a request was refused when it arrived."""
        if self._recorder is None:
            config = self._endpoint.config(0, self._run_id(self._endpoint.engine_id(0), _RUN))
            self._recorder = Recorder(config, self._sink_for(config), arrival.arrived_ns)
            self._began_ns = arrival.arrived_ns
        self._recorder.request(Sequence(arrival), arrival.arrived_ns, "rejected")

    def close(self) -> None:
        """No more come."""
        if self._recorder is not None:
            self._recorder.told_ns = self._began_ns
            self._recorder.end()
