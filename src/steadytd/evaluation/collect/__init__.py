"""One pass over a log: what is asked for, ratios, and sums block by block."""
