"""Writes tests/data/chat/: the output of jinja2 and of the families' own encoders for generated chats.

    python3 tools/chat/make_goldens.py [--deepseek FOLDER] [--templates FOLDER]

needs jinja2 (the goldens were made with 3.1.6) and rewrites

    conversations.json   the chats
    snippets.json        small templates, their variables, and their output (null: an error)
    tiny.json, …         one 64-bit FNV-1a hash per chat ("": an error) and the first texts

--deepseek is the folder of DeepSeek-V3's tokenizer. --templates is a folder with what checkpoints
ship: deepseek-v2.jinja, deepseek-r1.jinja (February 2025), deepseek-v3.1-tools.jinja (the shipped
one, with the tools block of the model card), Kimi-K2-Instruct.jinja, Kimi-K2-Thinking.jinja and
encoding_dsv32.py (DeepSeek-V3.2). Sets whose source is not given stay as they are.

Some shipped templates are known to be wrong for certain chats (V3 and R1 after a second round of
tool calls, Kimi-K2-Instruct with a line break after its default system text). Their chats are
reduced to the part that is rendered as in training: see `plain`, `one_round` and `system_first`,
which src/chat/golden_test.cc repeats. V3.2's encoder writes a system message at the end as the
beginning of the answer; `system_with_user` gives it the text where it belongs, and the test expects
the same prompt without that help.
"""

import argparse
import copy
import importlib.util
import json
import pathlib

import conversations
import snippets
import template_env

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/data/chat"
CHATS = 240
FULL = 6
BOS, EOS = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & (2**64 - 1)
    return f"{value:016x}"


def write(name, value):
    (OUT / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def write_set(name, texts):
    write(name, {"hashes": ["" if t is None else fnv(t) for t in texts], "texts": texts[:FULL]})


def plain(chat):
    chat = {**chat, "messages": [m for m in chat["messages"] if m["role"] != "tool" and "tool_calls" not in m]}
    chat.pop("tools", None)
    return chat


def one_round(chat):
    kept, rounds, inside = [], 0, False
    for message in chat["messages"]:
        if "tool_calls" in message:
            rounds += 1
        inside = "tool_calls" in message or (inside and message["role"] == "tool")
        if not inside or rounds <= 1:
            kept.append(message)
    chat = {**chat, "messages": kept}
    chat.pop("tools", None)
    return chat


def system_first(chat):
    first = chat["messages"][0]["role"] if chat["messages"] else ""
    before = [] if first == "system" else [{"role": "system", "content": "S"}]
    return {**chat, "messages": before + chat["messages"]}


def system_with_user(chat):
    messages, last = list(chat["messages"]), []
    while messages and messages[-1]["role"] == "system":
        last.insert(0, messages.pop())
    if messages and messages[-1]["role"] == "user":
        text = "".join("\n\n" + m["content"] for m in last if m["content"])
        messages[-1] = {**messages[-1], "content": messages[-1]["content"] + text}
    return {**chat, "messages": messages}


def rendered(source, chats, mutable=False):
    return [template_env.render(source, conversations.variables(c, BOS, EOS), mutable) for c in chats]


def encoded_v32(path, chats):
    spec = importlib.util.spec_from_file_location("encoding_dsv32", path)
    encoder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(encoder)
    texts = []
    for chat in chats:
        messages = copy.deepcopy(chat["messages"])
        if chat.get("tools"):
            if not messages or messages[0]["role"] != "system":
                messages.insert(0, {"role": "system", "content": ""})
            messages[0]["tools"] = chat["tools"]
        try:
            texts.append(encoder.encode_messages(messages, "thinking" if chat["thinking"] else "chat"))
        except Exception:
            texts.append(None)
    return texts


def template_of(folder):
    return json.loads((folder / "tokenizer_config.json").read_text())["chat_template"]


def write_snippets():
    def outputs(sources, mutable):
        return [[s, template_env.render(s, copy.deepcopy(snippets.VARIABLES), mutable)] for s in sources]

    write("snippets.json", {"variables": snippets.VARIABLES, "immutable": outputs(snippets.ALL, False),
                            "mutable": outputs(snippets.MUTABLE, True)})


def write_shipped(folder, chats):
    def read(name):
        return (folder / name).read_text()

    write_set("deepseek_v2.json", rendered(read("deepseek-v2.jinja"), map(plain, chats)))
    r1 = read("deepseek-r1.jinja")
    write_set("deepseek_r1.json", rendered(r1, map(one_round, chats)))
    # V3's tool turns: R1's, with its outputs on lines of their own and without anything about thinking.
    v3 = r1.replace("{{'<｜tool▁output▁begin｜>'", "{{'\\n<｜tool▁output▁begin｜>'")
    v3 = v3.replace("<think>\\n", "").replace("'</think>' in content", "false")
    write_set("deepseek_v3_tools.json", rendered(v3, map(one_round, chats)))
    write_set("deepseek_v3.1.json", rendered(read("deepseek-v3.1-tools.jinja"), chats))
    write_set("deepseek_v3.2.json", encoded_v32(folder / "encoding_dsv32.py", map(system_with_user, chats)))
    kimi = {thinking: rendered(read(name), [system_first(c) for c in chats], mutable=True)
            for thinking, name in ((False, "Kimi-K2-Instruct.jinja"), (True, "Kimi-K2-Thinking.jinja"))}
    write_set("kimi_k2.json", [kimi[c["thinking"]][i] for i, c in enumerate(chats)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deepseek", type=pathlib.Path)
    parser.add_argument("--templates", type=pathlib.Path)
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    chats = [conversations.conversation(i) for i in range(CHATS)]
    write("conversations.json", chats)
    write_snippets()
    write_set("tiny.json", rendered(template_of(ROOT / "models/tiny"), chats))
    if args.deepseek:
        source = template_of(args.deepseek)
        write_set("deepseek_v3_template.json", rendered(source, chats))
        write_set("deepseek_v3.json", rendered(source, map(plain, chats)))
    if args.templates:
        write_shipped(args.templates, chats)


if __name__ == "__main__":
    main()
