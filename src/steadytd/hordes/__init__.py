"""Many predictions on one live stream."""
