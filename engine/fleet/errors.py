"""What can be wrong with a fleet."""

from ...errors import InputError


class FleetError(InputError):
    """A fleet that cannot be run; the message names the endpoint or route, and the key."""
