"""A cluster for the members of a team: whose rights are the server's own, and must not become
theirs."""
