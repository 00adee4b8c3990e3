"""Finite Markov decision processes: checked, with exact stationary distributions and values."""
