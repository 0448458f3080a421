"""Grammars that cost a server as much as they can, as fields of a completion, and usual ones that look like them."""


def _properties(count, schema, **more):
    return {"type": "object", "properties": {f"property_{i}": schema(i) for i in range(count)}, **more}


def _chain(count, last):
    return "root ::= r0\n" + "".join(f'r{i} ::= ("a" | "") r{i + 1}\n' for i in range(count)) + f"r{count} ::= {last}"


# Name: field, value, what the refusal says. All are refused.
REFUSED = {
    "pattern of three counts": ("guided_json", {"type": "string", "pattern": "^(([a-z]{1,200}){1,200}){1,20}$"}, "'pattern'"),
    "pattern of two counts": ("guided_json", {"type": "string", "pattern": "^([a-z]{1,50}){1,50}$"}, "'pattern'"),
    "pattern deep inside": ("guided_json", {"items": {"properties": {"a": {"pattern": "^([a-z]{1,50}){1,50}$"}}}}, "'items.properties.a'"),
    "names by such a pattern": ("guided_json", {"propertyNames": {"pattern": "^([a-z]{1,50}){1,50}$"}, "maxProperties": 3}, "states"),
    "regex of two counts": ("guided_regex", "([a-z]{1,50}){1,50}", "states"),
    "rule of two counts": ("guided_grammar", "root ::= ([a-z]{1,50}){1,50}", "rule 'root'"),
    "two rules with counts": ("guided_grammar", "root ::= a{1,50}\na ::= [a-z]{1,50}", "rule 'root'"),
    "8000 absent parts": ("guided_grammar", "root ::= " + ' '.join(['("a" | "")'] * 8000), "at most 64"),
    "a chain of absent parts": ("guided_grammar", _chain(2000, '"b"'), "at most 64"),
    "doubled rules": ("guided_grammar", "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(20)) + 'r20 ::= "x" | ""', "at most 64"),
    "a rule of itself twice": ("guided_grammar", 'root ::= s\ns ::= s s | "a" | ""', "at most 64"),
    "many wide classes": ("guided_grammar", "root ::= " + " | ".join(f'[a-zA-Z]{{1,200}} "{i}"' for i in range(40)), "at most 8000"),
    "1500 ranges": ("guided_json", _properties(1500, lambda i: {"type": "integer", "minimum": i * 1237 + 13, "maximum": i * 777777 + 3711000},
                                               required=[f"property_{i}" for i in range(1500)]), "at most 8000"),
    "5000 members": ("guided_json", _properties(5000, lambda i: {}), "at most 2000"),
    "no end": ("guided_json", {"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, "demands itself"),
    "a circle": ("guided_json", {"$ref": "#"}, "leads back to itself"),
    "a circle in allOf": ("guided_json", {"allOf": [{"$ref": "#"}]}, "leads back to itself"),
}

# Name: field, value. These are answered.
USUAL = {
    "maxLength 100": ("guided_json", {"type": "string", "maxLength": 100}),
    "maxLength 4000": ("guided_json", {"type": "string", "maxLength": 4000}),
    "400 properties": ("guided_json", _properties(400, lambda i: {"type": "string"}, additionalProperties=True)),
    "20 lengths": ("guided_json", _properties(20, lambda i: {"type": "string", "maxLength": 50 + 37 * i})),
    "200 functions": ("guided_json", {"anyOf": [{"type": "object", "required": ["name", "arguments"], "properties": {
        "name": {"const": f"tool_{i}"}, "arguments": {"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": 1000}, "mode": {"enum": ["a", "b", "c"]},
            "text": {"type": "string", "maxLength": 2000}}}}} for i in range(200)]}),
    "a long text": ("guided_regex", "[a-z ]{1,2000}"),
    "lists in a list": ("guided_json", {"type": "array", "maxItems": 50, "items": {"type": "array", "maxItems": 50, "items": {"type": "boolean"}}}),
}

# Name: field, value. Within the bounds, and as dear as they can be.
DEAR = {
    "counts at the bound": ("guided_grammar", "root ::= ([a-z]{1,16}){1,16}"),
    "absent parts at the bound": ("guided_grammar", "root ::= " + ' '.join(['("a" | "")'] * 64)),
    "wide classes at the bound": ("guided_grammar", "root ::= " + " | ".join(f'[a-zA-Z]{{1,20}} "{i}"' for i in range(13))),
    "900 members": ("guided_json", _properties(900, lambda i: {"type": "string"})),
    "a list of words": ("guided_json", {"enum": [f"value number {i * 7919 % 10000}" for i in range(10000)]}),
}
