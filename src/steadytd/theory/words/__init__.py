"""What the numbers of a certificate mean: findings, a recommendation, all learners side by side."""
