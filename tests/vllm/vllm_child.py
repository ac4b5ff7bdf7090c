"""A process that is vLLM's EngineCore as far as the plugin sees it: real entry point, hooks and spool, fake scheduler.

python vllm_child.py FOLDER_OF_FAKE_VLLM SECONDS [how it ends: exit, shutdown, fork]
"""

import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [sys.argv[1], str(HERE), str(HERE.parents[1] / "plugins" / "vllm")]

from farebox_vllm import register  # noqa: E402


def serve(seconds: float, ends: str) -> None:
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine.core import EngineCore
    from vllm_fake import FakeRequest

    scheduler: Any = Scheduler(budget=100, blocks=1000)
    core = EngineCore(scheduler)
    deadline = time.monotonic() + seconds
    number = 0
    while time.monotonic() < deadline:
        while len(scheduler.requests) < 6:
            number += 1
            request = FakeRequest(f"r{number}", 20, 30)
            request.trace_headers = {"x-tenant": f"t{number % 3}"}
            scheduler.add_request(request)
        out = scheduler.schedule()
        time.sleep(0.002)
        scheduler.update_from_output(out, scheduler.run_model(out))
        print(time.time_ns(), flush=True)
    if ends == "shutdown":
        core.shutdown()


if __name__ == "__main__":
    register()
    register()
    if sys.argv[3] == "fork":
        child = multiprocessing.get_context("fork").Process(target=serve, args=(float(sys.argv[2]), "exit"))
        child.start()
        child.join()
    else:
        serve(float(sys.argv[2]), sys.argv[3])
