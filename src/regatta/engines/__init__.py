"""Whoever runs jobs: one contract, two engines, and what they do alike."""
