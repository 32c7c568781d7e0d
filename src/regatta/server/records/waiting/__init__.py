"""Waiting for a team's database: for how long, and with whom."""
