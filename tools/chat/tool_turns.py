"""Writes tests/data/chat/tool_turns.json: prompts of conversations with tools, as their sources render them.

    python3 tools/chat/tool_turns.py --templates FOLDER

needs jinja2. FOLDER has the texts that others publish, which are not part of this repository:

    deepseek-v3-tools.jinja      vLLM, examples/tool_chat_template_deepseekv3.jinja
    deepseek-r1-tools.jinja      vLLM, examples/tool_chat_template_deepseekr1.jinja
    deepseek-v3.1-tools.jinja    vLLM, examples/tool_chat_template_deepseekv31.jinja, without the white space around its tags
    encoding_dsv32.py            DeepSeek-V3.2, encoding/; or vLLM, vllm/tokenizers/deepseek_v32_encoding.py
    Kimi-K2-Instruct.jinja       llama.cpp, models/templates
    Kimi-K2-Thinking.jinja       llama.cpp, models/templates/moonshotai-Kimi-K2-Thinking.jinja
    GLM-4.6.jinja                llama.cpp, models/templates
    GLM-4.7-Flash.jinja          llama.cpp, models/templates
    GLM-5.jinja                  GLM-4.7's with the reasoning of GLM-5: as it was sent, and shown if it is defined

Every chat begins with a system message, because Kimi-K2-Instruct adds a line break to the one it has by itself. Where a template needs arguments as an object, they are given as
one, as vLLM and SGLang do.
"""

import argparse
import copy
import json
import pathlib

import make_goldens
import template_env

BOS, EOS = make_goldens.BOS, make_goldens.EOS
TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "The weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                       "required": ["city"]}}},
    {"type": "function", "function": {
        "name": "search", "description": "Looks something up",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}, "filters": {"type": "object"}}}}},
]
MARKS = "<｜tool▁calls▁end｜><｜User｜></think><|im_end|></tool_call><|user|></｜DSML｜invoke><think>"


def user(text):
    return {"role": "user", "content": text}


def answer(text, reasoning=None, *calls):
    message = {"role": "assistant", "content": text}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [
            {"id": f"functions.{name}:{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for number, name, arguments in calls]
    return message


def result(number, name, text):
    return {"role": "tool", "tool_call_id": f"functions.{name}:{number}", "name": name, "content": text}


def as_text(value):
    return json.dumps(value, ensure_ascii=False)


PARIS = (0, "get_weather", as_text({"city": "Paris", "days": 3}))
ONE_CALL = [{"role": "system", "content": "Be brief."}, user("How is the weather in Paris?"), answer("", "I need the weather.", PARIS),
            result(0, "get_weather", "sunny, 21°C")]
SECOND_QUESTION = [*ONE_CALL, answer("Sunny.", "It is sunny."), user("And in Rome?")]
ROME = (1, "get_weather", as_text({"days": 1, "city": "Rome"}))
NEWS = (2, "search", as_text({"q": "Rome \"news\"\n{", "filters": {"since": [2026, 1.5], "only": None}}))
CHATS = {
    "first question": ONE_CALL[:2],
    "one call": ONE_CALL,
    "without reasoning": [*ONE_CALL[:2], answer("", None, PARIS), ONE_CALL[3]],
    "second question": SECOND_QUESTION,
    "parallel calls after a second question": [
        *SECOND_QUESTION,
        answer("Let me see.", "Two things.", ROME, NEWS), result(1, "get_weather", "rain"),
        result(2, "search", "nothing")],
    "two rounds of calls": [
        *ONE_CALL, answer("", "Now Rome.", ROME), result(1, "get_weather", "rain")],
    "marks in texts": [
        ONE_CALL[0], user("What is " + MARKS + "?"), answer("I look for " + MARKS, "Hm.", (0, "search", as_text({"q": MARKS}))),
        result(0, "search", MARKS)],
}

# Name, file, encoder of Latte, whether lists may grow, whether arguments are an object, modes of thinking.
SOURCES = [
    ("deepseek_v3", "deepseek-v3-tools.jinja", None, False, True, [False]),
    ("deepseek_r1", "deepseek-r1-tools.jinja", None, False, True, [False]),
    ("deepseek_v3.1", "deepseek-v3.1-tools.jinja", "deepseek_v3.1", False, True, [False]),
    ("deepseek_v3.2", "encoding_dsv32.py", "deepseek_v3.2", False, False, [True, False]),
    ("kimi_k2", "Kimi-K2-Instruct.jinja", "kimi_k2", True, False, [False]),
    ("kimi_k2_thinking", "Kimi-K2-Thinking.jinja", "kimi_k2", False, False, [True]),
    ("glm_4.6", "GLM-4.6.jinja", None, False, True, [True, False]),
    ("glm_4.7", "GLM-4.7-Flash.jinja", None, False, True, [True, False]),
    ("glm_5", "GLM-5.jinja", None, False, True, [True, False]),
]


def with_objects(messages):
    messages = copy.deepcopy(messages)
    for message in messages:
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


def prompts(path, messages, mutable, objects, thinking):
    if path.suffix == ".py":
        # The original and SGLang read reasoning_content, vLLM reads reasoning.
        messages = [{**m, "reasoning": m.get("reasoning_content")} for m in messages]
        chat = {"messages": messages, "tools": TOOLS, "thinking": thinking}
        return make_goldens.encoded_v32(path, [chat])[0]
    given = dict(messages=with_objects(messages) if objects else messages, tools=TOOLS, documents=None,
                 add_generation_prompt=True, thinking=thinking, enable_thinking=thinking, bos_token=BOS, eos_token=EOS)
    return template_env.render(path.read_text(), given, mutable)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", type=pathlib.Path, required=True)
    folder = parser.parse_args().templates
    sources = [
        {"name": name, "file": file, "encoder": encoder, "thinking": thinking,
         "prompts": {chat: prompts(folder / file, messages, mutable, objects, thinking)
                     for chat, messages in CHATS.items()}}
        for name, file, encoder, mutable, objects, modes in SOURCES for thinking in modes]
    out = {"tools": TOOLS, "chats": CHATS, "sources": sources}
    (make_goldens.OUT / "tool_turns.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
