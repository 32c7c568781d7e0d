"""A team's records, beside the engine's own store: whose a job was, and what became of it."""
