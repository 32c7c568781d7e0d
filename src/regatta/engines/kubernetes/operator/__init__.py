"""What `regatta operator` runs: it looks after the jobs of a cluster."""
