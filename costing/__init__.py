"""Costing: who pays for which nanosecond of GPU, what it costs, and the report that adds up to the invoice."""
