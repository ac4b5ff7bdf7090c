"""The log: vLLM's own, so that what the plugin says is read where vLLM is read."""

import logging

LOG = logging.getLogger("vllm.farebox")
