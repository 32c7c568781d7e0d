"""What replicas printed, as it lies on the disk."""
