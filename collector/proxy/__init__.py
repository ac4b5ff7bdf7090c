"""A transparent reverse proxy before an OpenAI-compatible server, which records who asked for how much."""
