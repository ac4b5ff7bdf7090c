"""Constants of the step model from recorded runs: replay what an engine served, and fit until the times agree."""
