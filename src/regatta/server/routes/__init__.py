"""Each route is one call of the engine."""
