"""The engine, which keeps sums, does what an engine does that looks at every sequence and every row."""

from hypothesis import given
from hypothesis import strategies as st
from properties import tries

SETTINGS = tries(50)


def by_end(requests):
    return sorted((r._replace(gpu_ns=None) for r in requests), key=lambda r: (r.finished_ns, r.request_id))


@SETTINGS
@given(data=st.data())
def test_same_steps_cells_and_requests_as_the_reference(kit, some_workloads, some_configs, data):
    config, arrivals = data.draw(some_configs()), data.draw(some_workloads())
    tape = kit.serve(config, arrivals, kit.checked)
    plain = kit.reference(config).serve(arrivals)
    assert tape.steps == plain.steps
    assert tape.cells == plain.cells
    assert by_end(tape.requests) == by_end(plain.requests)
    gpu_ns = {r.request_id: r.gpu_ns for r in plain.requests}
    for request in tape.requests:  # rounded down by less than two clock units per step
        assert 0 <= gpu_ns[request.request_id] - request.gpu_ns <= config.gpus
