"""What a study found: best configurations, differences, theory's predictions, sentences."""
