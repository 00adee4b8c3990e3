"""Streams of transitions that learners are fed from."""
