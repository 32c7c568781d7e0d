"""What a cluster no longer has, as it was last seen: it keeps no record itself."""
