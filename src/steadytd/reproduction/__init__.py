"""The paper's experiments: run, and held against theory and against the paper."""
