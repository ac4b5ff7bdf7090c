"""Sources and their wiring: events in, costing, storage out."""
