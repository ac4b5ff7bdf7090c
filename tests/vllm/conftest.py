"""The plugin is a distribution of its own: its folder is put on the path."""

import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "plugins" / "vllm")]

FILES = {
    "vllm/v1/core/sched/scheduler.py": """
        from types import SimpleNamespace as Of
        from vllm_fake import FakeScheduler

        class Scheduler(FakeScheduler):
            def __init__(self, **options):
                super().__init__(**options)
                self.parallel_config.__dict__.update(data_parallel_size=1, data_parallel_rank=0, world_size=1)
                self.vllm_config = Of(
                    model_config=Of(model="tiny", served_model_name=None, quantization=None, dtype="torch.bfloat16"),
                    parallel_config=self.parallel_config,
                    scheduler_config=Of(max_num_seqs=8, max_num_batched_tokens=100),
                )
                self.kv_cache_config = Of(kv_cache_tensors=[Of(size=64_000)], num_blocks=1000)
    """,
    "vllm/v1/engine/core.py": """
        class EngineCore:
            def __init__(self, scheduler):
                self.scheduler = scheduler

            def shutdown(self):
                pass
    """,
    "vllm/platforms/__init__.py": """
        class current_platform:
            get_device_name = staticmethod(lambda: "NVIDIA H100 80GB HBM3")
            get_device_uuid = staticmethod(lambda number: f"GPU-{number}")
    """,
}


@pytest.fixture(scope="session")
def fake_vllm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package `vllm` that has what the plugin looks for."""
    folder = tmp_path_factory.mktemp("fake")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text))
    return folder
