"""The engine: laws, lanes, compiled loops. Knows nothing of problems, files of data, or plots."""
