"""The loop of a Horde: written from a law, as the engine's own is."""
