"""A Regatta server as an `Engine` over HTTP; `connect.py` is the way in."""
