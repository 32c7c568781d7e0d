"""Whose processes a team's jobs are, on the machine of its server."""
