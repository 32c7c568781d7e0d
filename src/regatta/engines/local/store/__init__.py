"""The engine's memory: SQLite, one writer, and the feed of what changed."""
