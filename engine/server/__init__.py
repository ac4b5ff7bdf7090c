"""The embedded engine behind OpenAI's API, in real time."""
