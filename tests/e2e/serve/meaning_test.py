"""The meaning of requests: results of tools, late instructions, stop strings, arguments, old turns, fields, schemas, templates.
Usage: meaning_test.py LATTE_BINARY; needs only Python's standard library. The models recite (reciter.py)."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from reciter import template, write_reciter
from server import Server, events

LATTE = None
CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"


def user(text="go"):
    return {"role": "user", "content": text}


def function(called_name, **properties):
    return {"type": "function", "function": {"name": called_name, "parameters": {
        "type": "object", "properties": properties, "$defs": {"day": {"type": "string"}, "a/b": {"type": "string"}}}}}


def called(*ids):
    """An answer that calls f, g, h."""
    calls = [{"id": number, "type": "function", "function": {"name": name, "arguments": "{}"}} for number, name in zip(ids, "fgh")]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def result(number, text):
    return {"role": "tool", "tool_call_id": number, "content": text}


FGH = [function(name) for name in "fgh"]


def glm(called_name, **values):
    parts = "".join(f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in values.items())
    return f"<tool_call>{called_name}{parts}</tool_call>"


def dsml(called_name, **values):
    """With every value as the model writes what is no string."""
    parts = "".join(f'<｜DSML｜parameter name="{key}" string="false">{value}</｜DSML｜parameter>\n' for key, value in values.items())
    return f'<｜DSML｜function_calls>\n<｜DSML｜invoke name="{called_name}">\n{parts}</｜DSML｜invoke>\n</｜DSML｜function_calls>'


THOUGHTS = "<think>Not the END yet.</think>Now the END of it."
GLM = {"think": THOUGHTS, "zip": glm("save", zip="10001"), "code": glm("save", code="12", flag="false"),
       "day": glm("save", when="2024", name="77"), "kind": glm("save", kind="1", fixed="7"), "none": glm("save", zip="null"),
       "text": glm("save", note="to the END of it", days="3"), "number": glm("save", days="12345")}
DSML = {"think": THOUGHTS, "text": dsml("save", note="ls -la"), "zip": dsml("save", zip="10001"), "day": dsml("save", when="2024", days="3")}
SAVE = function(
    "save", zip={"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, code={"type": ["string", "null"]},
    flag={"type": "boolean"}, when={"$ref": "#/$defs/day"}, name={"$ref": "#/$defs/a~1b"}, kind={"enum": ["1", "2"]},
    fixed={"const": "7"}, note={"type": "string"}, days={"type": "integer"})
V32 = {"model_type": "deepseek_v32", "architectures": ["DeepseekV32ForCausalLM"], "index_topk": 64, "index_n_heads": 2, "index_head_dim": 16}


class Meaning(unittest.TestCase):
    """Tests over servers that start once: `models` makes their models."""
    models = {}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        for name, (texts, mark, config) in cls.models.items():
            model = write_reciter(pathlib.Path(folder.name) / name, texts, template(texts, mark) if mark else None, **config)
            server = Server(LATTE, "--cache-bytes", "16M", model=model)
            cls.addClassCleanup(server.__exit__)
            setattr(cls, name, server)

    def prompt(self, server, messages, **more):
        status, _, answer = server.post("/apply-template", {"messages": messages, **more})
        self.assertEqual(status, 200, answer)
        return answer["prompt"]

    def refused(self, server, path, body, *words):
        status, _, answer = server.post(path, body)
        self.assertEqual(status, 400, answer)
        for word in words:
            self.assertIn(word, answer["error"]["message"])

    def chat(self, server, text, **more):
        status, _, answer = server.post(CHAT, {"messages": [user(text)], "max_tokens": 200, **more})
        self.assertEqual(status, 200, answer)
        return answer["choices"][0]

    def arguments(self, server, text):
        (call,) = self.chat(server, text, tools=[SAVE])["message"]["tool_calls"]
        return json.loads(call["function"]["arguments"])


class Results(Meaning):
    models = {"kimi": ({"<|im_middle|>": "Hello."}, None, {"model_type": "kimi_k2"}), "plain": ({"hi": "Hello."}, "<arg_key>", {})}

    def returns(self, messages):
        """The results by the calls that Kimi's format names before them."""
        text = self.prompt(self.kimi, messages, tools=FGH)
        return re.findall(r"## Return of functions\.(\w):\d\n(\w*)", text)

    def test_results_belong_to_the_calls_that_they_name(self):
        self.assertEqual(self.returns([user(), called("x", "y"), result("y", "Y"), result("x", "X")]), [("f", "X"), ("g", "Y")])

    def test_a_call_without_a_result_shifts_no_other(self):
        self.assertEqual(dict(self.returns([user(), called("x", "y", "z"), result("z", "Z"), result("y", "Y")]))["g"], "Y")
        self.assertEqual(dict(self.returns([user(), called("x", "y"), result("y", "Y"), user("And?")]))["g"], "Y")

    def test_an_unknown_id_is_named(self):
        self.refused(self.kimi, "/apply-template", {"messages": [user(), called("x", "y"), result("q", "Q")], "tools": FGH}, "'q'", "'x', 'y'")

    def test_a_result_without_text_is_empty(self):
        empty = {"role": "tool", "tool_call_id": "x"}
        self.assertEqual(self.returns([user(), called("x", "y"), empty, result("y", "Y")])[1], ("g", "Y"))

    def test_templates_and_other_apis_see_the_order_of_the_calls(self):
        text = self.prompt(self.plain, [user(), called("x", "y", "z"), result("z", "Z"), result("x", "X"), result("y", "Y")], tools=FGH)
        self.assertLess(text.find("X"), text.find("Y"))
        self.assertLess(text.find("Y"), text.find("Z"))
        blocks = [{"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": name * 200} for name in "xy"]
        uses = [{"type": "tool_use", "id": f"toolu_{name}", "name": called_name, "input": {}} for name, called_name in zip("xy", "fg")]
        tools = [{"name": name, "input_schema": {"type": "object"}} for name in "fg"]
        usages = []
        for results in (blocks, blocks[::-1]):
            body = {"messages": [user(), {"role": "assistant", "content": uses}, {"role": "user", "content": results}], "tools": tools}
            usages.append(self.plain.post(MESSAGES, {**body, "max_tokens": 1})[2]["usage"])
        # The second conversation is the first one: all of its whole pages are known.
        self.assertGreater(usages[1]["cache_read_input_tokens"], 300, usages)


class LateInstructions(Meaning):
    models = {"v32": ({"</think>": "Ready to help."}, None, V32)}
    ANSWER = {"role": "assistant", "content": "Sunny."}

    def last_turn(self, messages, **more):
        return self.prompt(self.v32, messages, **more).rpartition("<｜User｜>")[2]

    def test_they_stand_on_the_users_side(self):
        for role in ("system", "developer"):
            self.assertEqual(self.last_turn([user("a"), {"role": role, "content": "LATER"}]), "a\n\nLATER<｜Assistant｜></think>")

    def test_several_of_them_in_a_later_turn_that_thinks(self):
        late = [{"role": "system", "content": text} for text in ("LATER", "MORE")]
        self.assertEqual(self.last_turn([user("a"), self.ANSWER, user("b"), *late], chat_template_kwargs={"thinking": True}),
                         "b\n\nLATER\n\nMORE<｜Assistant｜><think>")

    def test_the_answer_of_the_other_apis_is_whole(self):
        late = [user(), {"role": "system", "content": "Mode: plan."}]
        answer = self.v32.post(MESSAGES, {"messages": late, "max_tokens": 30})[2]
        self.assertEqual(answer["content"][0]["text"], "Ready to help.")
        answer = self.v32.post(RESPONSES, {"input": [user(), {"role": "developer", "content": "Mode: plan."}], "max_output_tokens": 30})[2]
        self.assertEqual(answer["output"][0]["content"][0]["text"], "Ready to help.")

    def test_no_answer_is_glued_to_an_answer(self):
        self.refused(self.v32, CHAT, {"messages": [user(), self.ANSWER]}, "messages.1", "no answer after an answer")


class StopStrings(Meaning):
    models = {"glm": (GLM, "<arg_key>", {}), "dsml": (DSML, "｜DSML｜", {})}

    def test_they_are_for_the_answer_and_not_for_the_reasoning(self):
        for server in (self.glm, self.dsml):
            choice = self.chat(server, "think", stop=["END"])
            self.assertEqual((choice["message"]["reasoning_content"], choice["message"]["content"], choice["finish_reason"]),
                             ("Not the END yet.", "Now the ", "stop"))

    def test_in_streams(self):
        connection, answer = self.glm.stream(CHAT, {"messages": [user("think")], "stop": "END"})
        deltas = [event["choices"][0]["delta"] for event in events(answer) if event != "[DONE]" and event["choices"]]
        connection.close()
        self.assertEqual("".join(delta.get("content") or "" for delta in deltas), "Now the ")

    def test_in_messages(self):
        answer = self.glm.post(MESSAGES, {"messages": [user("think")], "max_tokens": 100, "stop_sequences": ["END"]})[2]
        self.assertEqual(([block["text"] for block in answer["content"] if block["type"] == "text"], answer["stop_sequence"]),
                         (["Now the "], "END"))

    def test_none_cuts_arguments_that_then_look_whole(self):
        for text, stop in (("text", "END"), ("number", "4"), ("text", "3")):
            choice = self.chat(self.glm, text, tools=[SAVE], stop=stop)
            found = json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])
            self.assertEqual(found, {"note": "to the END of it", "days": 3} if text == "text" else {"days": 12345})


class Arguments(Meaning):
    models = {"glm": (GLM, "<arg_key>", {}), "dsml": (DSML, "｜DSML｜", {})}

    def test_digits_for_a_text_or_null_are_a_text(self):
        self.assertEqual(self.arguments(self.glm, "zip"), {"zip": "10001"})
        self.assertEqual(self.arguments(self.glm, "none"), {"zip": None})

    def test_a_list_of_types(self):
        self.assertEqual(self.arguments(self.glm, "code"), {"code": "12", "flag": False})

    def test_references(self):
        self.assertEqual(self.arguments(self.glm, "day"), {"when": "2024", "name": "77"})

    def test_values_without_a_type(self):
        self.assertEqual(self.arguments(self.glm, "kind"), {"kind": "1", "fixed": "7"})

    def test_what_the_model_calls_no_text_is_json_all_the_same(self):
        self.assertEqual(self.arguments(self.dsml, "text"), {"note": "ls -la"})
        self.assertEqual(self.arguments(self.dsml, "day"), {"when": "2024", "days": 3})
        self.assertEqual(self.arguments(self.dsml, "zip"), {"zip": "10001"})


class Histories(Meaning):
    models = {"plain": ({"hi": "Hello."}, "<arg_key>", {})}

    def answered(self, path, body):
        status, _, answer = self.plain.post(path, body)
        self.assertEqual(status, 200, answer)

    def test_an_answer_without_text(self):
        for answer in ({"role": "assistant", "content": None}, {"role": "assistant", "reasoning_content": "Hm."}):
            self.answered(CHAT, {"messages": [user(), answer, user("hi")]})

    def test_pictures_of_earlier_turns(self):
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        messages = [{"role": "user", "content": [picture]}, {"role": "assistant", "content": "A duck."}, user("hi")]
        self.answered(CHAT, {"messages": messages})
        self.assertIn("image left out", self.prompt(self.plain, messages))

    def test_blocks_that_name_a_tool(self):
        use = {"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}
        found = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "tool_reference", "tool_name": "Read"}]}
        self.answered(MESSAGES, {"messages": [user(), {"role": "assistant", "content": [use]}, {"role": "user", "content": [found]}],
                                 "tools": [{"name": "ToolSearch", "input_schema": {"type": "object"}}], "max_tokens": 8})

    def test_searches_of_resumed_sessions(self):
        search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "ducks"}}
        self.answered(RESPONSES, {"input": [user(), search, {"role": "assistant", "content": "Ducks swim."}, user("hi")]})

    def test_too_long_is_said_in_the_words_that_agents_look_for(self):
        long = [user("a b " * 4000)]
        self.refused(self.plain, MESSAGES, {"messages": long, "max_tokens": 8}, "prompt is too long: ", "> 2048 maximum")
        self.refused(self.plain, CHAT, {"messages": long}, "maximum context length")
        self.refused(self.plain, RESPONSES, {"input": long}, "maximum context length")


class Fields(Meaning):
    models = {"plain": ({"hi": "Hello."}, "<arg_key>", {})}

    def test_whole_numbers_and_no_limit(self):
        for limit, expected in ((1.0, "length"), (-1, "stop")):
            self.assertEqual(self.chat(self.plain, "hi", max_tokens=limit)["finish_reason"], expected)

    def test_choices_of_tools_as_other_apis_write_them(self):
        self.assertEqual(self.chat(self.plain, "hi", tools=FGH, tool_choice={"type": "auto"})["message"]["content"], "Hello.")


class Schemas(Meaning):
    """Over models/tiny: the grammar decides what is written."""
    NULL = {"type": "null"}

    @classmethod
    def setUpClass(cls):
        if "constrained answers: xgrammar" not in subprocess.run([LATTE, "--version"], capture_output=True, text=True, check=True).stdout:
            raise unittest.SkipTest("this build has no xgrammar")
        cls.server = Server(LATTE, "--seed", "0")
        cls.addClassCleanup(cls.server.__exit__)

    def values(self, schema):
        body = {"messages": [user()], "n": 4, "max_tokens": 100, "temperature": 1.5,
                "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}}
        status, _, answer = self.server.post(CHAT, body)
        self.assertEqual(status, 200, answer)
        return [json.loads(choice["message"]["content"]) for choice in answer["choices"] if choice["finish_reason"] == "stop"]

    def test_quotes_and_control_characters_of_a_pattern_are_escaped(self):
        for pattern in ('^"[a-c]+"$', "^a\\tb$", "^[\\\\]c$", "^\\n[a-c]{2}$"):
            for value in self.values({"type": "string", "pattern": pattern}):
                self.assertRegex(value, pattern)

    def test_a_name_that_only_required_knows(self):
        for value in self.values({"type": "object", "properties": {"a": self.NULL}, "required": ["a", "b"], "propertyNames": {"maxLength": 1}}):
            self.assertEqual(set(value), {"a", "b"})

    def test_references_into_lists(self):
        schema = {"$defs": {"x": {"anyOf": [self.NULL, {"const": "ref"}]}}, "$ref": "#/$defs/x/anyOf/1"}
        self.assertEqual(set(self.values(schema)), {"ref"})

    def test_a_type_beside_alternatives(self):
        schema = {"type": "string", "anyOf": [{"const": "c"}, {"const": 7}]}
        self.assertEqual(set(self.values(schema)), {"c"})

    def test_no_alternative_is_refused(self):
        body = {"messages": [user()], "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": {"anyOf": []}}}}
        self.refused(self.server, CHAT, body, "anyOf")


class Templates(unittest.TestCase):
    """Each with a server of its own: a template is refused as a whole."""

    def shows(self, text, expected):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "chat.jinja"
            path.write_text(text)
            with Server(LATTE, "--chat-template", path) as server:
                self.assertEqual(server.post("/apply-template", {"messages": [user("b"), user("a")]})[2]["prompt"], expected)

    def test_sort_and_unique(self):
        self.shows("{{ messages | map(attribute='content') | sort | join }}{{ [1, 1, 2] | unique | join }}", "ab12")

    def test_numbers(self):
        self.shows("{{ 2.567 | round(1) }} {{ [1, 2] | sum }} {{ [1, 3] | max }} {{ 2 ** 3 }}", "2.6 3 3 8")

    def test_formats_and_indents(self):
        self.shows("{{ '%03d|%s' % (7, 'x') }}{{ '\\na' | indent(2) }}", "007|x\n  a")

    def test_raw_text_and_number_keys(self):
        self.shows("{% raw %}{{ x }}{% endraw %}{{ {1: 'one'}[1] }}", "{{ x }}one")


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
