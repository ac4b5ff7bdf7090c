"""What can go wrong inside the engine."""


class IntegrityError(RuntimeError):
    """The engine's books do not balance: a bug, never an input."""
