"""GPUs as the page of NVIDIA's DCGM exporter tells them."""
