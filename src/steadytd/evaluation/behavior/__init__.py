"""An unknown behaviour policy, estimated from the log."""
