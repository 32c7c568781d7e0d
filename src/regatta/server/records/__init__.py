"""A team's database, beside the engine's own store."""
