"""The `regatta` command."""
