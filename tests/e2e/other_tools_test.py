"""Models saved by other tools: end tokens that only the tokenizer names, recommendations with null and −1, chat templates
in every place, copies quantised in other formats. Usage: other_tools_test.py LATTE_BINARY; needs only Python's standard
library.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LATTE = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRST = "Once upon a time"
END = "<｜end▁of▁sentence｜>"
GREEDY = ["--temperature", "0"]


def latte(*args, stdin=""):
    return subprocess.run([LATTE, *map(str, args)], input=stdin, text=True, capture_output=True, timeout=300)


class Copy(unittest.TestCase):
    """Tests with a copy of a model; its weights are a link."""

    def setUp(self):
        parent = tempfile.TemporaryDirectory()
        self.addCleanup(parent.cleanup)
        self.parent = pathlib.Path(parent.name)
        self.model = self.copy(ROOT / "models/tiny")

    def copy(self, source):
        folder = self.parent / source.name
        folder.mkdir()
        for file in source.iterdir():
            if file.suffix == ".safetensors":
                (folder / file.name).symlink_to(file)
            else:
                shutil.copyfile(file, folder / file.name)
        return folder

    def edit(self, name, **changes):
        """Sets members of a JSON file; None removes one."""
        path = self.model / name
        document = json.loads(path.read_text())
        for key, value in changes.items():
            document[key] = value
            if value is None:
                del document[key]
        path.write_text(json.dumps(document))

    def good(self, *args, stdin=""):
        done = latte(*args, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def story(self, *more):
        return json.loads(self.good("run", self.model, "-p", FIRST, "--json", *more).stdout)

    def batch(self, **body):
        """The body of the answer to one request."""
        lines = self.parent / "in.jsonl"
        lines.write_text(json.dumps({"custom_id": "x", "method": "POST", "url": "/v1/completions",
                                     "body": {"prompt": FIRST, **body}}) + "\n")
        self.good("batch", self.model, "-i", lines, "-o", self.parent / "out.jsonl", "--overwrite")
        return json.loads((self.parent / "out.jsonl").read_text())["response"]["body"]

    def refused(self, *args, words, stdin=""):
        done = latte(*args, stdin=stdin)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class EndTokens(Copy):
    def test_those_of_the_tokenizer_end_a_text_where_no_config_names_one(self):
        expected = self.story("-n", 1000, *GREEDY)
        self.assertLess(len(expected["text"]), 3000)
        self.edit("config.json", eos_token_id=None)
        self.edit("generation_config.json", eos_token_id=None)
        for token in (END, {"__type": "AddedToken", "content": END, "lstrip": False}):
            self.edit("tokenizer_config.json", eos_token=token)
            self.assertEqual(self.story("-n", 1000, *GREEDY)["text"], expected["text"])
            choice = self.batch(max_tokens=1000, temperature=0)["choices"][0]
            self.assertEqual((choice["text"], choice["finish_reason"]), (expected["text"], "stop"))
            chat = self.good("chat", self.model, "-n", 1000, *GREEDY, stdin=FIRST + "\n")
            self.assertEqual(chat.stderr, "")
        self.edit("tokenizer_config.json", eos_token=None)
        self.assertEqual(self.batch(max_tokens=300, temperature=0)["choices"][0]["finish_reason"], "length")
        (self.model / "special_tokens_map.json").write_text(json.dumps({"eos_token": {"content": END}}))
        self.assertEqual(self.batch(max_tokens=1000, temperature=0)["choices"][0]["finish_reason"], "stop")

    def test_the_configs_goes_before_the_tokenizers(self):
        ids = [int(i) for i in self.good("tokenize", self.model, "--text", " was").stdout.split()]
        self.edit("config.json", eos_token_id=ids[0])
        self.edit("generation_config.json", eos_token_id=None)
        choice = self.batch(max_tokens=1000, temperature=0)["choices"][0]
        self.assertEqual(choice["finish_reason"], "stop")
        self.assertNotIn(" was", choice["text"])


class Recommendations(Copy):
    def test_null_and_minus_one_say_nothing(self):
        plain = self.story("-n", 20, "--seed", 5)["text"]
        own = self.batch(max_tokens=20, seed=5)["choices"][0]["text"]
        self.assertEqual(own, plain)
        for changes in ({"top_k": -1}, {"top_k": 0, "min_p": 0}):
            self.edit("generation_config.json", **changes)
            self.assertEqual(self.story("-n", 20, "--seed", 5)["text"], plain)
            self.assertEqual(self.batch(max_tokens=20, seed=5)["choices"][0]["text"], plain)
        (self.model / "generation_config.json").write_text(json.dumps(
            {"do_sample": True, "temperature": 0.8, "top_k": None, "top_p": None, "min_p": None,
             "repetition_penalty": None, "max_length": None, "eos_token_id": None}))
        self.assertEqual(self.story("-n", 20, "--seed", 5)["text"], plain)
        self.assertEqual(self.batch(max_tokens=20, seed=5)["choices"][0]["text"], plain)

    def test_run_and_batch_read_the_same_values(self):
        plain = self.story("-n", 40, "--seed", 5, "--temperature", 1)["text"]
        for changes in ({"min_p": 0.5}, {"top_k": 2}, {"repetition_penalty": 1.8}):
            shutil.copyfile(ROOT / "models/tiny/generation_config.json", self.model / "generation_config.json")
            self.edit("generation_config.json", temperature=1, **changes)
            text = self.story("-n", 40, "--seed", 5)["text"]
            self.assertNotEqual(text, plain, changes)
            self.assertEqual(self.batch(max_tokens=40, seed=5)["choices"][0]["text"], text, changes)
            off = {key: 1 if key == "repetition_penalty" else 0 for key in changes}
            self.assertEqual(self.batch(max_tokens=40, seed=5, **off)["choices"][0]["text"], plain, changes)

    def test_what_is_out_of_range_is_the_files_fault(self):
        lines = self.parent / "in.jsonl"
        lines.write_text("\n")
        for key, value in (("top_k", -2), ("top_p", 1.5), ("min_p", 2), ("repetition_penalty", 0),
                           ("temperature", -1)):
            shutil.copyfile(ROOT / "models/tiny/generation_config.json", self.model / "generation_config.json")
            self.edit("generation_config.json", **{key: value})
            words = (f"generation_config.json: '{key}': expected",)
            self.refused("run", self.model, "-p", FIRST, "-n", 2, words=words)
            self.refused("chat", self.model, words=words, stdin="Hi\n")
            self.refused("batch", self.model, "-i", lines, "-o", self.parent / "out.jsonl", words=words)


class ChatTemplates(Copy):
    OTHER = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}"

    def chat(self):
        return self.good("chat", self.model, "-n", 20, *GREEDY, stdin=FIRST + "\n")

    def test_they_are_found_in_every_place(self):
        text = self.story("-n", 20, *GREEDY)["text"]
        self.assertNotEqual(self.chat().stdout.strip(), text.strip())
        self.edit("tokenizer_config.json", chat_template=None)
        named = [{"name": "rag", "template": "{{ 1 // 0 }}"}, {"name": "default", "template": self.OTHER}]
        for name, content in (("chat_template.json", json.dumps({"chat_template": self.OTHER})),
                              ("chat_template.json", json.dumps({"chat_template": named})),
                              ("additional_chat_templates/default.jinja", self.OTHER),
                              ("chat_template.jinja", self.OTHER)):
            (self.model / name).parent.mkdir(exist_ok=True)
            (self.model / name).write_text(content)
            self.assertEqual(self.chat().stdout.strip(), text.strip(), name)
            (self.model / name).unlink()
        self.edit("tokenizer_config.json", chat_template={"default": self.OTHER, "tool_use": "x"})
        done = self.chat()
        self.assertEqual(done.stdout.strip(), text.strip())
        self.assertIn("'tool_use'", done.stderr)

    def test_one_of_no_use_fails_chats_only(self):
        for value in ([{"name": "rag", "template": "x"}], {"tool_use": "x"}, 7):
            self.edit("tokenizer_config.json", chat_template=value)
            self.story("-n", 2)
            self.batch(max_tokens=2)
            self.refused("chat", self.model, stdin="Hi\n", words=("tokenizer_config.json", "chat_template"))


class Routers(Copy):
    def test_greedy_as_deepseek_misspells_it(self):
        self.model = self.copy(ROOT / "tests/goldens/v2_lite")
        score = ("score", self.model, "--ids", "1,2,3,4,5", "--json")
        expected = self.good(*score).stdout
        self.edit("config.json", topk_method="gready")
        self.assertEqual(self.good(*score).stdout, expected)
        self.edit("config.json", topk_method="gredy")
        self.refused(*score, words=("topk_method", "greedy", "gredy"))


class OtherQuantisations(Copy):
    def test_the_tool_is_named_and_what_to_take_instead(self):
        config = (self.model / "config.json").read_text()
        for changes, tool in (({"quantization": {"group_size": 64, "bits": 4}}, "MLX"),
                              ({"quantization_config": {"group_size": 64, "bits": 4}}, "MLX"),
                              ({"quantization_config": {"quant_method": "bitsandbytes"}}, "bitsandbytes"),
                              ({"quantization_config": {"quant_method": "exl3", "bits": 4.0}}, "EXL3"),
                              ({"quantization_config": {"quant_method": "hqq"}}, "HQQ"),
                              ({"quantization_config": {"quant_algo": "NVFP4"}}, "ModelOpt")):
            (self.model / "config.json").write_text(config)
            self.edit("config.json", **changes)
            for command in (("run", self.model, "-p", "x"), ("inspect", self.model)):
                self.refused(*command, words=("config.json", tool, "take the original checkpoint"))

    def test_a_folder_for_llama_cpp(self):
        for path in (self.model / "config.json", *self.model.glob("*.safetensors")):
            path.unlink()
        (self.model / "tiny-Q4_K_M.gguf").write_text("GGUF")
        self.refused("run", self.model, "-p", "x", words=("tiny-Q4_K_M.gguf", "download it again"))


if __name__ == "__main__":
    LATTE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
