"""Which lines of a log somebody asked for, and where they were: the same on every engine."""
