"""The brain: what a job should do next. Pure functions, no clock, no I/O."""
