"""Generated conversations for the chat goldens: every shape of turn that the templates tell apart."""

import json
import random

FRAGMENTS = [
    "", " ", "\n", "Hello", "What is 2+2?", "naïve café", "日本語のテキスト", "😀👩‍👩‍👧", "line one\nline two\n",
    "  leading and trailing  ", "\ttab", "{{ braces }}", "{% if x %}", "'quotes' \"double\"", "back\\slash \\n",
    "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "<think>", "</think>",
    "<|im_end|>", "<|im_system|>", "<｜DSML｜function_calls>", "User: ", "Assistant:", "\u3000wide\u00a0",
    "<｜tool▁outputs▁begin｜>", "1 < 2 & 3 > 2", "\u0000\u0007", "e\u0301", "[1, 2]", "None",
]
NAMES = ["get_weather", "search", "run_code", "函数"]
VALUES = [1, -2.5, "Paris", "naïve \"q\"", True, None, [1, "a"], {"deep": {"er": []}}, 1e100, "", "line\nline"]
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "é"},
                                                        "days": {"type": "integer", "default": 1}},
                       "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "search", "description": "Look <something> up & \"quote\" it",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}},
]


class Maker:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.calls = 0

    def text(self):
        return "".join(self.rng.choice(FRAGMENTS) for _ in range(self.rng.randrange(4)))

    def call(self):
        rng = self.rng
        arguments = {rng.choice("abcdé") + str(i): rng.choice(VALUES) for i in range(rng.randrange(4))}
        name = rng.choice(NAMES)
        self.calls += 1
        return {"id": f"functions.{name}:{self.calls - 1}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}}

    def assistant(self, calls):
        message = {"role": "assistant", "content": self.text()}
        if calls:
            message["tool_calls"] = [self.call() for _ in range(calls)]
            if self.rng.random() < 0.6:
                message["content"] = None
        if self.rng.random() < 0.4:
            message["reasoning_content"] = self.text() or "because"
        if message["content"] is not None and self.rng.random() < 0.15:
            message["content"] = "thought</think>" + message["content"]
        return message

    def messages(self):
        rng = self.rng
        out = []
        for _ in range(rng.choice([0, 0, 1, 1, 1, 2])):
            out.append({"role": "system", "content": self.text()})
        for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 5])):
            out.append({"role": "user", "content": self.text()})
            if rng.random() < 0.1:
                out[-1]["name"] = "alice"
            while rng.random() < 0.3:
                calls = rng.choice([1, 1, 2, 3])
                out.append(self.assistant(calls))
                for call in out[-1]["tool_calls"]:
                    out.append({"role": "tool", "content": self.text(), "tool_call_id": call["id"],
                                "name": call["function"]["name"]})
            if rng.random() < 0.8:
                out.append(self.assistant(0))
        if rng.random() < 0.7:
            out.append({"role": "user", "content": self.text()})
        elif rng.random() < 0.2:
            out.append({"role": "system", "content": self.text()})
        return out


def conversation(seed):
    maker = Maker(seed)
    out = {"messages": maker.messages(), "generate": maker.rng.random() < 0.7, "thinking": maker.rng.random() < 0.5}
    if maker.rng.random() < 0.4:
        out["tools"] = TOOLS[: maker.rng.randrange(1, 3)]
    return out


def variables(chat, bos, eos):
    """What transformers passes to a template."""
    return dict(messages=chat["messages"], tools=chat.get("tools"), documents=None,
                add_generation_prompt=chat["generate"], thinking=chat["thinking"],
                enable_thinking=chat["thinking"], bos_token=bos, eos_token=eos)
