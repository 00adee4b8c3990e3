"""What a policy is worth, from a log of another policy."""
