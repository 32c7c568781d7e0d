"""How a job is handed in to a team's server, and what is finished of it after a death."""
