"""A folder for the PYTHONPATH of training programs: it holds what they may import, and no more."""
