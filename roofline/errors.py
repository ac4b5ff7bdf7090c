"""What can be wrong with a description of hardware or model."""

from ..errors import InputError


class SpecError(InputError):
    """A GPU, model or combination of both that cannot be run; the message says what to do."""
