"""The REST door: a thin layer between HTTP and an engine."""
