"""Validates Kubernetes objects (a JSON list on standard input) against the schemas of the versions named as arguments.

Prints a JSON list of problems, each with version, object and what is wrong. Kinds without a schema are listed as such.
"""

import json
import sys

import kubernetes_validate


def problems_of(objects: list[dict[str, object]], version: str) -> list[dict[str, str]]:
    problems: list[dict[str, str]] = []
    for each in objects:
        metadata = each["metadata"]
        assert isinstance(metadata, dict)
        name = f"{each['kind']} {metadata['name']}"
        try:
            kubernetes_validate.validate(each, version, strict=True)
        except kubernetes_validate.SchemaNotFoundError:
            problems.append({"version": version, "object": name, "problem": "no schema"})
        except kubernetes_validate.ValidationError as error:
            path = ".".join(str(part) for part in error.path)
            problems.append({"version": version, "object": name, "problem": f"{path}: {error.message}"})
    return problems


rendered = json.load(sys.stdin)
json.dump([problem for version in sys.argv[1:] for problem in problems_of(rendered, version)], sys.stdout)
