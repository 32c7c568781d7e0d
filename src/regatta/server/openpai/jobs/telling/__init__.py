"""A job as its author knows it: its roles, its names, its rules. Pure."""
