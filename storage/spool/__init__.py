"""Spools: how other processes hand events to the one that records. Writing needs the standard library only."""
