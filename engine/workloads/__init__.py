"""Workloads: streams of arrivals, read from recorded traces or generated from a seed."""
