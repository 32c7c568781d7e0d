"""Jobs as pods of a cluster."""
