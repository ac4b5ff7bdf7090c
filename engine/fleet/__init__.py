"""Fleets: several endpoints of their own GPUs, limits, prices and hours, with a router before them."""

from .endpoint import Endpoint
from .errors import FleetError
from .fleet import Fleet
from .hours import Hours, Shift
from .replay import replay_fleet
from .route import Route

__all__ = ["Endpoint", "Fleet", "FleetError", "Hours", "Route", "Shift", "replay_fleet"]
