"""Online learners followed over the log, on one machine or a cluster."""
