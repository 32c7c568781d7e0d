"""What an engine tells of its jobs, written down as it happens, so that it outlives them."""
