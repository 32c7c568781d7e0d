"""This machine's server as a process: its files and locks, finding, starting and guarding it.

Knows nothing about jobs. The guardian imports this package, so nothing is imported here.
"""
