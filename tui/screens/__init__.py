"""The pages, one screen each, and their style sheets."""
