"""The rows of a log as they are, where few features are active."""
