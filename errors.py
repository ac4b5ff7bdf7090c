"""Errors that a user can act on: what happened, where, and what to do."""


class FareboxError(Exception):
    """Something outside the program is wrong; the message is for the user. Commands end with `exit_code`."""

    exit_code = 1


class InputError(FareboxError, ValueError):
    """What the user gave cannot be used: a bad flag, file or name. Nothing was changed."""

    exit_code = 2
