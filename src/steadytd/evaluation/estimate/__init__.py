"""From sums to values: estimators, intervals, overlap, stability."""
