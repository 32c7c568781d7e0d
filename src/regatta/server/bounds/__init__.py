"""How much a server has underway and waiting for those who send and read, and for how long."""
