"""What is looked at before a job is queued."""
