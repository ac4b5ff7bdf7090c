"""Spools into a store: each event once, whoever is killed, and nothing stopped by what is damaged."""
