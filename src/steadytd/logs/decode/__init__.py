"""From Arrow columns to checked arrays in the order of the episodes."""
