"""What is done for somebody else's account: where a server takes the jobs of a team."""
