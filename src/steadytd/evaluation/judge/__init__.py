"""What the values are worth: findings, and which learner to believe."""
