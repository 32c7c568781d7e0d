"""What a user waits for, measured beside peers or limits in the same run."""
