"""Tools, chat formats with calls, and checks of arguments, which the tests of several clients share."""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPLATES = ROOT / "tests/data/chat/templates"
VERSION = subprocess.run([os.environ["LATTE"], "--version"], capture_output=True, text=True, check=True).stdout
# tiny calls functions only if a grammar makes it.
needs_grammar = pytest.mark.skipif("xgrammar" not in VERSION, reason="latte is built without xgrammar: make grammar")
# The chat format of a family, and the switch without which its model would reason first.
FAMILIES = {"deepseek_v3": {}, "kimi_k2.5": {"thinking": False}, "glm": {"enable_thinking": False}}
CITIES = ["Paris", "Rome"]


def function(name, description, properties):
    return {"type": "function", "function": {
        "name": name, "description": description,
        "parameters": {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}}}


# Schemas that bound the length of arguments.
TOOLS = [
    function("get_weather", "The weather in a city", {"city": {"type": "string", "enum": CITIES},
                                                      "days": {"type": "integer", "minimum": 1, "maximum": 9}}),
    function("set_alarm", "Sets an alarm", {"on": {"type": "boolean"}, "hours": {"type": "array", "maxItems": 2, "items": {
        "type": "integer", "minimum": 0, "maximum": 23}}}),
]
VOCABULARY = json.loads((ROOT / "models/tiny/tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
# White space may stand almost anywhere in JSON, and tiny likes it. Without it, calls are short.
NO_SPACES = {str(number): -100 for token, number in VOCABULARY.items() if set(token) <= {"Ġ", "Ċ", "ĉ", "č"}}
LINE_FEED = str(VOCABULARY["Ċ"])  # is between the calls of DeepSeek-V3
# Where the chat formats let a call follow or the calls end, these tokens begin the end.
NO_END = {str(number): -100 for token, number in VOCABULARY.items() if token[0] in "<s"}
ASK = "How is the weather in Paris?"


def check_arguments(name, arguments):
    if name == "get_weather":
        assert set(arguments) == {"city", "days"}
        assert arguments["city"] in CITIES and 1 <= arguments["days"] <= 9
    else:
        assert name == "set_alarm" and set(arguments) == {"on", "hours"}
        assert isinstance(arguments["on"], bool) and len(arguments["hours"]) <= 2
