"""What a learner will do: fixed points and mean dynamics, exactly, without running it."""
