"""From a command line to a submission."""
