"""Staying with a job."""
