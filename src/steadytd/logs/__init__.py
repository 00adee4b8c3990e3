"""Logs of transitions: opened, checked and read in batches of bounded size."""
