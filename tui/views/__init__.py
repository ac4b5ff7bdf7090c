"""What pages show beside the snapshot: frozen views that the worker makes of a scene."""
