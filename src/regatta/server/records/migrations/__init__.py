"""How a team's database becomes what this release expects: one numbered step after another."""
