"""Stores: the hot one (SQLite) that screens look at, and the archive (Parquet) that reports read."""
