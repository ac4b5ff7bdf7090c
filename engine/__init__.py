"""The embedded engine: iteration-level batching over a paged KV cache, in virtual time."""
