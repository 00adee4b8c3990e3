"""Running learners on problems, and what came out."""
