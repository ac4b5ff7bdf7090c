"""Units that rounding left over go to the largest remainders of each step, however many cells it has."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing import segments
from farebox.costing.segments import Segments

CELLS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=20), min_size=1, max_size=6)


@pytest.mark.parametrize("few", [0, segments.FEW_ROWS])
@tries(60)
@given(steps=CELLS, data=st.data())
def test_the_largest_remainders_get_one_more_ties_to_the_earlier_cell(few, steps, data):
    left = [data.draw(st.integers(0, len(step))) for step in steps]
    expected = []
    for step, units in zip(steps, left, strict=True):
        first = sorted(range(len(step)), key=lambda at, step=step: (-step[at], at))[:units]
        expected += [int(at in first) for at in range(len(step))]
    labels = np.repeat(np.arange(len(steps)), [len(step) for step in steps])
    remainders = np.array([value for step in steps for value in step], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "FEW_ROWS", few)
        found = Segments.from_labels(labels).top_up(np.zeros_like(remainders), remainders, np.array(left))
    assert found.tolist() == expected
