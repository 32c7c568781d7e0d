"""Where a cluster is, and who we are to it."""
