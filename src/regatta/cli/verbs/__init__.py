"""One file per verb. Each is imported only when its verb is used."""
