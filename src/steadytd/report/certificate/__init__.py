"""The page of a certificate."""
