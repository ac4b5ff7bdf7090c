"""Mixing: towards a point that a map leaves where it is, without swinging around it."""

from __future__ import annotations

import numpy as np

from .unknowns import SPREAD, Vector

MOST_BACK = 0.8
"""The largest part that the image before the last one gets."""


class Mixing:
    """Anderson's acceleration with a memory of one step.

    Too slow constants fill a replay's steps with more riders, which makes the next ones too fast: where two images lie
    on different sides of their points, the next point is in between.
    """

    def __init__(self) -> None:
        self._last: tuple[Vector, Vector] | None = None

    def next(self, point: Vector, image: Vector) -> Vector:
        """The point to try after `point`, which the map sends to `image`."""
        last, self._last = self._last, (image, image - point)
        if last is None:
            return image
        last_image, last_way = last
        way, turn = (image - point) / SPREAD, (image - point - last_way) / SPREAD
        length = float(turn @ turn)
        back = 0.0 if not length else float(np.clip(way @ turn / length, 0.0, MOST_BACK))
        return image - back * (image - last_image)
