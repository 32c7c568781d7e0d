"""Copies of what a cluster holds, kept true by watches and shared by their readers."""
