"""A team's records, beside the engine's own store: whose a job was, and what became of it."""

import logging

# It tells of each database that it looks at, also where there is nothing to do, and of what it
# consists of: the latter while it is imported, so this comes first.
logging.getLogger("alembic").setLevel(logging.WARNING)
