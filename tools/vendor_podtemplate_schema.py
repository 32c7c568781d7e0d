"""Regenerates `src/regatta/api/podtemplate.schema.json` from Kubernetes' own OpenAPI description.

    python tools/vendor_podtemplate_schema.py --version v1.36.3
    python tools/vendor_podtemplate_schema.py --swagger path/to/swagger.json

The description is taken from the Go module `k8s.io/kubernetes` (needs `go`), so that the schema is
the one of a release and anybody gets the same file. Only what a PodTemplateSpec reaches is kept,
without descriptions: with them it would be a hundred times larger, and nothing of ours reads them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[1] / "src/regatta/api/podtemplate.schema.json"
ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
PREFIX = "#/definitions/"
KEPT = ("type", "required", "enum")

#: What JSON may hold where the description only says "string".
OVERRIDES: dict[str, dict[str, Any]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["integer", "string"]},
}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--version", default="v1.36.3")
    arguments.add_argument("--swagger", type=Path, help="use this file instead of the Go module's")
    given = arguments.parse_args()
    swagger = given.swagger or download(given.version)
    definitions = json.loads(swagger.read_text())["definitions"]
    kept: dict[str, Any] = {}
    keep(ROOT, definitions, kept)
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$comment": f"PodTemplateSpec of Kubernetes {given.version}, Apache-2.0. "
        "Made by tools/vendor_podtemplate_schema.py; do not edit.",
        "$ref": PREFIX + short(ROOT),
        "definitions": dict(sorted(kept.items())),
    }
    TARGET.write_text(json.dumps(schema, separators=(",", ":"), sort_keys=True) + "\n")
    print(f"{TARGET}: {len(kept)} definitions, {TARGET.stat().st_size:,} bytes")


def download(version: str) -> Path:
    command = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/")
    return Path(json.loads(answer.stdout)["Dir"]) / "api/openapi-spec/swagger.json"


def short(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def keep(name: str, definitions: dict[str, Any], kept: dict[str, Any]) -> None:
    """Copy one definition, and all that it names, into `kept`."""
    if short(name) in kept:
        return
    kept[short(name)] = {}
    kept[short(name)] = OVERRIDES.get(name) or slim(definitions[name], definitions, kept)


def slim(
    schema: dict[str, Any], definitions: dict[str, Any], kept: dict[str, Any]
) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(PREFIX)
        keep(name, definitions, kept)
        return {"$ref": PREFIX + short(name)}
    result = {key: schema[key] for key in KEPT if key in schema}
    if "items" in schema:
        result["items"] = slim(schema["items"], definitions, kept)
    if "properties" in schema:
        result["properties"] = {
            key: slim(value, definitions, kept) for key, value in schema["properties"].items()
        }
        result["additionalProperties"] = False
    elif "additionalProperties" in schema:
        result["additionalProperties"] = slim(schema["additionalProperties"], definitions, kept)
    return result


if __name__ == "__main__":
    main()
