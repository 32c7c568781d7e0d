"""Text becomes documents, with the line of every value."""
