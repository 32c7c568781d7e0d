"""The one HTTP client of the command line and of the Python SDK."""
