"""Telling somebody what is wrong."""
