"""The small program that plays one replica and outlives the server.

It starts as `python -I -S .../supervisor/__main__.py <run folder>`, reads `run.json`, and from then
on speaks only through files in that folder. One of it runs per replica, so every import counts:
nothing here imports more than `os`, `time` and C extension modules, and nothing outside this
package. `life` is the story; the other modules are what it needs.
"""
