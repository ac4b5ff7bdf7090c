"""The jump engine: continuous batching told in columns, the same to the last integer as `engine.Engine`, and faster."""
