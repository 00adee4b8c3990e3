"""The compiled loop of a law: written as source, compiled, and the compiled helpers around it."""
