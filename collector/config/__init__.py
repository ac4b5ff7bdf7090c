"""What `farebox collect` is told by its file: sources, store, exporter and alerts."""
