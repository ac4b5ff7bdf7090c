"""A fleet: endpoints, and the rules that lead requests to them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path

from ..arrival import Arrival
from .endpoint import Endpoint
from .errors import FleetError
from .route import Route


@dataclass(frozen=True)
class Fleet:
    """`routes` are tried in order, the first that takes a request decides; what none takes goes to `default`.

    Raises:
        FleetError: names that are unknown or taken, routes or endpoints that no request can reach.
    """

    endpoints: tuple[Endpoint, ...]
    routes: tuple[Route, ...] = ()
    default: str = ""
    """Name of an endpoint; empty: the first."""

    @classmethod
    def from_toml(cls, path: str | Path) -> Fleet:
        """Read a fleet file (docs/engine.md has the keys); FleetError says what is wrong, with file and key."""
        from .file import read_fleet

        return read_fleet(Path(path))

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise FleetError("no endpoint: a fleet needs at least one [[endpoint]]")
        names = [endpoint.name for endpoint in self.endpoints]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise FleetError(f'two endpoints are called "{twice[0]}"')
        for name, where in [(self.default, "default")] * bool(self.default) + [
            (route.endpoint, f"route {number}: endpoint") for number, route in enumerate(self.routes, 1)
        ]:
            if name not in names:
                raise FleetError(f'{where}: there is no endpoint "{name}"; there are: {", ".join(names)}')
        self._refuse_unreachable_routes()
        self._refuse_unreachable_endpoints()
        self._refuse_two_prices()

    def endpoint_for(self, arrival: Arrival) -> Endpoint:
        """Where a request goes."""
        name = next((route.endpoint for route in self.routes if route.takes(arrival)), self.default)
        return next((endpoint for endpoint in self.endpoints if endpoint.name == name), self.endpoints[0])

    def run_id(self, inputs: Iterable[str], engine_id: str, number: int) -> str:
        """Name of an engine's run, the `number`th from 0: a hash of this fleet and of `inputs`, which name the traffic.

        Prices are left out: they change nothing that happens.
        """
        unpriced = replace(self, endpoints=tuple(replace(e, price=None, currency="") for e in self.endpoints))
        identity = json.dumps([asdict(unpriced), *inputs, engine_id, number], sort_keys=True)
        return sha256(identity.encode()).hexdigest()[:16]

    def _refuse_unreachable_routes(self) -> None:
        for number, route in enumerate(self.routes):
            for before, earlier in enumerate(self.routes[:number]):
                if earlier.covers(route):
                    raise FleetError(
                        f"route {number + 1} is never reached: route {before + 1} takes all that it would take;"
                        " put the narrower rule first, or remove it"
                    )

    def _refuse_unreachable_endpoints(self) -> None:
        reached = {self.default or self.endpoints[0].name, *(route.endpoint for route in self.routes)}
        for endpoint in self.endpoints:
            if endpoint.name not in reached:
                raise FleetError(
                    f'endpoint "{endpoint.name}" gets no requests: no [[route]] leads to it, and it is not the default'
                )

    def _refuse_two_prices(self) -> None:
        """An example price becomes the rate of a host."""
        prices: dict[str, Endpoint] = {}
        for endpoint in self.endpoints:
            other = prices.setdefault(endpoint.engine.host, endpoint)
            if (other.price, other.currency) != (endpoint.price, endpoint.currency):
                raise FleetError(
                    f'endpoints "{other.name}" and "{endpoint.name}" are on host "{other.engine.host}" at different'
                    " prices: a host has one price, so give one of them another host"
                )
