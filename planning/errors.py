"""What can be wrong with a plan."""

from ..errors import InputError


class PlanError(InputError):
    """A scenario, a change or a store that cannot be planned with; the message says what to do."""
