"""Compiled loops over a chunk of rows, eight numbers at a time."""
