"""Who is frozen by a control group of version 1 does not die before it is let go.

A program that may make such groups can put itself, or its supervisor, into one. Nobody else in the
group is ours to wake, so a process is moved out of it, which lets go of this one alone.
"""

from __future__ import annotations


def release(pid: int) -> None:
    """Move it, with all its threads, to where this process is. Does nothing where it cannot."""
    place = _place("self")
    if place:
        try:
            with open(place + "/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(pid))
        except OSError:
            pass


def frozen_in(pid: int) -> str:
    """The group that keeps it from going on, as a folder; empty for none."""
    place = _place(str(pid))
    state = _text(place + "/freezer.state").strip() if place else ""
    return place if state in ("FROZEN", "FREEZING") else ""


def _place(pid: str) -> str:
    """The folder of its group in the hierarchy that freezes; empty where none is mounted."""
    group = ""
    for line in _text(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if "freezer" in controllers.split(","):
            group = path
    for line in _text("/proc/self/mountinfo").splitlines():
        mount, _, system = line.partition(" - ")
        kind, _, options = system.split(" ", 2)
        if group and kind == "cgroup" and "freezer" in options.split(","):
            root, point = mount.split(" ")[3:5]
            inside = group.removeprefix(root.rstrip("/")) if group.startswith(root) else ""
            return (point + inside).rstrip("/")
    return ""


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
