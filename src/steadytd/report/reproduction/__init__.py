"""The reproduction as a page: figures, panels of the supplement, the table of verdicts."""
