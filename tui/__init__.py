"""The terminal dashboard: a pure reader of a store."""
