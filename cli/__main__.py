"""`python -m farebox.cli`: the same as the `farebox` script."""

from .app import main

main()
