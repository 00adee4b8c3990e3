"""Feature maps: from observations to the rows of a feature table."""
