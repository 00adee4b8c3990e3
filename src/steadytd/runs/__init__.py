"""Running learners on problems and environments, and what came out."""
