"""Planning: recorded traffic through the embedded engine, as it was and changed."""
