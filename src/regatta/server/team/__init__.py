"""What `regatta serve --team` is made of."""
