"""Farebox's plugin for vLLM: exact steps, cells and requests from inside EngineCore, written to a spool.

vLLM finds `register` through the entry point `vllm.general_plugins` and calls it in every process it starts.
"""

from .middleware import TenantMiddleware
from .plugin import register

__all__ = ["TenantMiddleware", "register"]
