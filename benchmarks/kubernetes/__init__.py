"""What users of a cluster wait for, on a real API server, beside the peers' operators."""
