"""The CRD as text: which files of a checkout hold it, and what stands in each."""

from __future__ import annotations

from typing import Any

import yaml

from regatta.api.crd.definition import definition

_HEADER = "# Made by `python -m regatta.api.crd`; do not edit.\n"


class _Plain(yaml.SafeDumper):
    """Without anchors, which few readers follow."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def rendered() -> dict[str, str]:
    """Text by path. Helm wants a copy of its own in the chart."""
    text = _text(definition())
    return {"deploy/v1/crd.yaml": text, "charts/regatta/crds/crd.yaml": text}


def _text(resource: dict[str, Any]) -> str:
    # Leaves on one line: a third of the lines that block style would take.
    body = yaml.dump(
        resource, Dumper=_Plain, sort_keys=False, default_flow_style=None, width=100, indent=2
    )
    return _HEADER + body
