"""Real training in real pods, with the operator installed as its users install it."""
