"""Which gangs start now, who holds what, and which addresses and ports are whose."""
