"""OpenPAI's REST contract, for clients that others wrote: its routes, shapes and words."""
