"""GPUs as NVIDIA's driver tells of them: what can be read, and why not what cannot."""
