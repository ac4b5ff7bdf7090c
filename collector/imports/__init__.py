"""What people already have, read into a store: logs of requests, sums of usage, samples of GPUs, traces."""
