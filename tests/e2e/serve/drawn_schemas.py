"""Draws JSON schemas in which every keyword that Latte enforces occurs, alone and next to another one. The same seed draws
the same schemas. Lengths and counts are small, so that a model that knows no JSON ends its answers."""
import random

WORDS = ["a", "b", "kind", "x y", "na\"me", "ключ", "tab\t"]
FORMATS = ["date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri", "uri-reference",
           "json-pointer"]
PATTERNS = ["^[a-c]{1,4}$", "^\"[a-z]{1,3}\"$", "^.{1,5}$", "^\\s{1,3}$", "^[^a]{2,4}$", "^(ab|c\\\\d)?\\n$", "^\\W{1,3}$", "^x",
            "^\\d{2}-\\d{2}$", "[a-f]{2}", "^[\"\\\\]{2}$", "^(?:a|bc)+\\.$", "^\\S{1,3}\\t"]
LEAVES = [{"type": "boolean"}, {"type": "null"}, {"type": "integer", "minimum": 0, "maximum": 99}, {"const": "c"},
          {"enum": ["p", 1, None]}, {"type": "string", "maxLength": 4}]
# Choices and values next to keywords of one type.
LEAVES_OF = {
    "string": [{"maxLength": 4}, {"type": "string", "minLength": 1, "maxLength": 5}, {"pattern": "^[a-d\"]{1,6}$"}],
    "number": [{"minimum": -4}, {"type": "integer"}, {"maximum": 200, "type": "number"}, {"exclusiveMinimum": 0.5}],
    "array": [{"maxItems": 2}, {"items": {"type": ["boolean", "null", "integer"]}}, {"type": "array", "maxItems": 3, "items": {"enum": [True, None, 1]}}],
    "object": [{"required": ["a"]}, {"maxProperties": 3}, {"properties": {"b": {"type": ["integer", "null"]}}}, {"type": "object", "properties": {"a": {}}}],
}
VALUES_OF = {"string": ["v", "q\"\\\n", "abc", "12-34", "2026-11-28", ""], "number": [0, 3, -2.5, 12, 100], "array": [[], [True], [1, "a"]],
             "object": [{}, {"a": 1}, {"b": None, "k": True}]}


class Drawer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.kind = None  # the type that choices and values are of

    def pick(self, items):
        return self.random.choice(items)

    def some(self, items, least=1, most=3):
        return self.random.sample(items, self.random.randint(least, min(most, len(items))))

    def leaf(self):
        return dict(self.pick(LEAVES_OF.get(self.kind, LEAVES)))

    def number(self):
        return self.pick([0, 1, 7, -3, 2.5, -0.25, 100, 1e3])

    def part(self):
        return dict(self.pick(LEAVES))

    def properties(self):
        return {name: self.part() for name in self.some(WORDS)}

    def value(self):
        return self.pick(VALUES_OF.get(self.kind, ["v", "q\"\\\n", 3, -2.5, True, None, [1, "a"], {"k": [None]}]))

    def alternatives(self):
        """Schemas that exclude one another."""
        apart = {"string": [{"maxLength": 1}, {"minLength": 2, "maxLength": 3}], "number": [{"maximum": 3}, {"exclusiveMinimum": 3}],
                 "array": [{"maxItems": 1}, {"minItems": 2}], "object": [{"required": ["a"]}, {"required": ["b"]}]}
        if self.kind in apart:
            return apart[self.kind]
        return self.some([{"type": "boolean"}, {"type": "integer", "maximum": 9}, {"type": "string", "maxLength": 3}, {"type": "null"},
                          {"type": "object", "properties": {"t": {"const": 1}}, "required": ["t"], "additionalProperties": False},
                          {"type": "array", "items": {"type": "null"}, "maxItems": 2}], 2, 3)

    def reference(self):
        """A reference, and what the root needs for it."""
        target = self.leaf()
        return self.pick([
            ({"$ref": "#/$defs/t"}, {"t": target}), ({"$ref": "#/$defs/a~1b/anyOf/1"}, {"a/b": {"anyOf": [{"type": "null"}, target]}}),
            ({"$ref": "#/$defs/c%20d"}, {"c d": target}), ({"$ref": "#/$defs/e~0"}, {"e~": target}),
            ({"$ref": "#anchor"}, {"f": {**target, "$anchor": "anchor"}}),
            ({"$ref": "#/$defs/g"}, {"g": {"$ref": "#/$defs/h"}, "h": target})])


def _length(d):
    return d.random.randint(0, 3)


# Each keyword: the type that it speaks of, and how it is drawn. None: any type.
DRAW = {
    "type": (None, lambda d: d.pick(["string", "integer", "number", "boolean", "null", "array", "object"])),
    "enum": (None, lambda d: [d.value() for _ in range(d.random.randint(1, 4))]),
    "const": (None, lambda d: d.value()),
    "anyOf": (None, lambda d: [d.leaf(), d.leaf()]),
    "oneOf": (None, lambda d: d.alternatives()),
    "allOf": (None, lambda d: [d.leaf(), d.leaf()] if d.kind else d.pick([
        [{"type": "integer", "minimum": 1}, {"maximum": 50}], [d.leaf()], [{"type": ["string", "null"]}, {"maxLength": 3}],
        [{"type": "object", "properties": d.properties()}, {"properties": {"z": d.leaf()}, "required": ["z"]}]])),
    "$ref": (None, None),
    "nullable": (None, lambda d: d.pick([True, False])),
    "properties": ("object", lambda d: d.properties()),
    "required": ("object", lambda d: d.some(WORDS, 1, 2)),
    "additionalProperties": ("object", lambda d: d.pick([False, d.part(), d.part(), d.part()])),
    "unevaluatedProperties": ("object", lambda d: d.pick([False, d.part()])),
    "patternProperties": ("object", lambda d: {regex: d.part() for regex in d.some(["^a", "^[x-z]{1,2}$", "\"", "k$"], 1, 2)}),
    "propertyNames": ("object", lambda d: d.pick([{"enum": d.some(WORDS)}, {"pattern": "^[a-d]{1,3}$"}, {"maxLength": 3}, {"minLength": 1, "maxLength": 4}])),
    "minProperties": ("object", lambda d: d.random.randint(0, 2)),
    "maxProperties": ("object", lambda d: d.random.randint(1, 3)),
    "items": ("array", lambda d: d.part()),
    "prefixItems": ("array", lambda d: [d.part() for _ in range(d.random.randint(1, 3))]),
    "minItems": ("array", _length),
    "maxItems": ("array", lambda d: 1 + _length(d)),
    "minLength": ("string", _length),
    "maxLength": ("string", lambda d: 2 + _length(d)),
    "pattern": ("string", lambda d: d.pick(PATTERNS)),
    "format": ("string", lambda d: d.pick(FORMATS)),
    "minimum": ("number", lambda d: d.number()),
    "maximum": ("number", lambda d: d.number()),
    "exclusiveMinimum": ("number", lambda d: d.number()),
    "exclusiveMaximum": ("number", lambda d: d.number()),
    "multipleOf": ("number", lambda d: d.pick([1, 2, 3, 5, 10, 12, 25])),
}
KEYWORDS = list(DRAW)
# Refused by name; they are drawn now and then.
REFUSED = {"not": {"type": "null"}, "uniqueItems": True, "contains": {"type": "null"}, "if": {"type": "string"},
           "dependentRequired": {"a": ["b"]}, "pattern": "^(?!a)b$", "format": "regex", "$ref": "https://example.org/s"}


def _bounded(drawer, schema):
    """Takes care that answers end soon: what a keyword leaves open is short."""
    types = schema.get("type", [])
    types = types if isinstance(types, list) else [types]
    if {"enum", "const"} & set(schema):
        return schema
    if "string" in types and not {"maxLength", "pattern", "format"} & set(schema):
        schema["maxLength"] = schema.get("minLength", 0) + 4
    if "array" in types:
        if "items" not in schema:
            schema["items"] = False if "prefixItems" in schema and not schema.get("minItems") else {"type": "boolean"}
        schema.setdefault("maxItems", max(3, schema.get("minItems", 0)))
    if "object" in types:
        if not {"properties", "required", "patternProperties", "propertyNames", "additionalProperties"} & set(schema):
            schema["properties"] = drawer.properties()
        if {"patternProperties", "propertyNames"} & set(schema) or schema.get("additionalProperties") or schema.get("unevaluatedProperties"):
            schema.setdefault("maxProperties", 3)
        if "additionalProperties" not in schema and "unevaluatedProperties" not in schema:
            schema["additionalProperties"] = drawer.part() if {"propertyNames", "required"} & set(schema) else False
        if any(isinstance(schema.get(key), dict) for key in ("additionalProperties", "unevaluatedProperties")):
            schema.setdefault("propertyNames", {"maxLength": 5})
            schema.setdefault("maxProperties", 4)
    return schema


CHOICES = {"enum", "const", "anyOf", "oneOf", "allOf", "$ref"}


def _with(drawer, keywords):
    """A schema with these keywords, of the types that they speak of, and what its root needs."""
    schema, definitions = {}, {}
    types = list(dict.fromkeys(DRAW[keyword][0] for keyword in keywords if DRAW[keyword][0]))
    drawer.kind = types[0] if types else None
    for keyword in keywords:
        if keyword == "$ref":
            reference, definitions = drawer.reference()
            schema.update(reference)
        else:
            schema[keyword] = DRAW[keyword][1](drawer)
    drawer.kind = None
    if types:
        types = types[:1] if CHOICES & set(schema) else types + ([schema["type"]] if "type" in schema else [])
        schema["type"] = types[0] if len(types) == 1 else list(dict.fromkeys(types))
    elif CHOICES & set(schema):
        schema.pop("type", None)
    else:
        schema.setdefault("type", "boolean")
    return _bounded(drawer, schema), definitions


def draw_schemas(count, seed):
    """Pairs: a schema, and the keywords that it was drawn for."""
    drawer = Drawer(seed)
    partners = KEYWORDS[:]
    for i in range(count):
        focus = KEYWORDS[i % len(KEYWORDS)]
        mode = i // len(KEYWORDS) % 3
        keywords = [focus]
        if mode > 0:
            keywords.append(drawer.pick([other for other in partners if other != focus]))
        schema, definitions = _with(drawer, keywords)
        if mode == 2:
            more = [drawer.pick(KEYWORDS), drawer.pick(KEYWORDS)]
            inner, others = _with(drawer, list(dict.fromkeys(more)))
            if not set(definitions) & set(others):
                keywords += more
                definitions = {**definitions, **others}
                schema = {"type": "object", "properties": {"one": schema, "two": inner}, "required": drawer.pick([["one"], ["one", "two"]]),
                          "additionalProperties": False}
        if i % 40 == 39:
            name = drawer.pick(list(REFUSED))
            schema, definitions = {**schema, name: REFUSED[name]}, {}
            keywords.append(name)
        if definitions:
            schema["$defs"] = definitions
        yield schema, keywords


def keywords_in(schema):
    """All keywords of DRAW that occur in a schema."""
    found = set()
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in DRAW:
                found.add(key)
            if key in ("properties", "patternProperties", "$defs"):
                for part in value.values():
                    found |= keywords_in(part)
            elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
                for part in value:
                    found |= keywords_in(part)
            elif key not in ("enum", "const", "required"):
                found |= keywords_in(value)
    return found
