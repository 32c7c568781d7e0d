"""What `regatta serve --team` is made of: one server for several people, in front of an engine."""
