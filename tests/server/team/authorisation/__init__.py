"""Who may do what on a team's server: every route, everybody, every visibility."""
