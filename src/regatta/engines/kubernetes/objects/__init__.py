"""Cluster objects as the brain's children, and back."""
