"""What the collector tells Prometheus."""
