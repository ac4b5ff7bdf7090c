"""The collector daemon: any number of sources into one store."""
