"""What may be a name: of a job, a task, a container, a label. Each answer is a sentence or None."""

from __future__ import annotations

import re

from regatta.api.checks.suggestions import shown

_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LABEL_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_VARIABLE = re.compile(r"[ -<>-~]+", re.ASCII)

#: The longest host name, label value and Service name.
LONGEST = 63
ALIAS = re.compile(r"[A-Za-z0-9._~-]+", re.ASCII)
LONGEST_ALIAS = 63


def about_job_name(name: str) -> str | None:
    """A job's name becomes host names (`<job>-worker-0`), and Service names, which are stricter."""
    if _LABEL_1035.fullmatch(name) and len(name) <= LONGEST:
        return None
    if len(name) > LONGEST:
        return (
            f"found {shown(name)}; a name that becomes host names has at most {LONGEST} characters"
        )
    right = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    right = right if right[:1].isalpha() else f"job-{right}".rstrip("-")
    suggestion = f', such as "{right}"' if right and len(right) <= LONGEST else ""
    return (
        f"found {shown(name)}; it becomes host names, so write lower-case letters, digits and -, "
        f"starting with a letter and ending with a letter or digit{suggestion}"
    )


def about_label(name: str, what: str) -> str | None:
    """A DNS label: tasks, containers, volumes."""
    if _LABEL_1123.fullmatch(name) and len(name) <= LONGEST:
        return None
    return (
        f"found {shown(name)}; {what} is at most {LONGEST} lower-case letters, digits and -, "
        "starting and ending with a letter or digit"
    )


def about_alias(name: str) -> str | None:
    """What programs call a role: they find it in variables, and build variables' names from it."""
    if ALIAS.fullmatch(name) and len(name) <= LONGEST_ALIAS:
        return None
    return (
        f"found {shown(name)}; an alias is at most {LONGEST_ALIAS} letters, digits, ., _, ~ and -"
    )


def about_namespace(name: str) -> str | None:
    return about_label(name, "a namespace")


def about_key(key: str) -> str | None:
    """The key of a label or annotation."""
    prefix, slash, name = key.rpartition("/")
    good = _QUALIFIED.fullmatch(name) and len(name) <= LONGEST
    if slash:
        good = good and _SUBDOMAIN.fullmatch(prefix) and len(prefix) <= 253
    if good:
        return None
    return (
        f"found {shown(key)}; a key is at most {LONGEST} letters, digits, -, _ and ., with an "
        "optional domain and / before it"
    )


def about_label_value(value: str) -> str | None:
    if not value or (_QUALIFIED.fullmatch(value) and len(value) <= LONGEST):
        return None
    return (
        f"found {shown(value)}; a label's value is at most {LONGEST} letters, digits, -, _ and ., "
        "starting and ending with a letter or digit (an annotation may hold anything)"
    )


def about_variable(name: str) -> str | None:
    """An environment variable, as Kubernetes 1.34 and later allow it."""
    if _VARIABLE.fullmatch(name):
        return None
    known, sign, value = name.partition("=")
    if sign and _VARIABLE.fullmatch(known):
        return f"found {shown(name)}; write name: {known} and, beside it, value: {shown(value)}"
    return f"found {shown(name)}; a variable's name has printable ASCII characters and no ="
