"""The steps, in order: none changes once it has been released."""
