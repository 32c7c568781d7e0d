"""What a job is: the resource, its defaults and its validation.

`job` holds the structs that travel everywhere, `load` reads a user's file into one. Only `load`
and `schema` need pydantic; the rest stays cheap to import.
"""
