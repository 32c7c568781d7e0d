"""An engine's streams as server-sent events."""
