"""Malformed folders, indexes and tokenizers, and unusual but valid checkpoints; see checkpoint_cases.py."""
import base64
import json
import os
import shutil

from checkpoint_cases import Case, NORM, add, bytes_of, edit_json, joined, put, drop, split, tensors, write

INDEX = "model.safetensors.index.json"
NOT_UTF8 = os.fsdecode(b"a\xff")
SHARD = "model-00002-of-00002.safetensors"


def index(name, change, *words):
    return Case(f"index: {name}", "shards", edit_json(INDEX, change), words)


def everywhere(file):
    """An index that puts every tensor in `file`."""
    return lambda document: document.update(weight_map={name: file for name in document["weight_map"]})


def indexes():
    for name, file in [("parent", "../../etc/passwd"), ("absolute", "/etc/passwd"), ("folder", "a/b.safetensors"),
                       ("backslash", "..\\x"),
                       ("NUL", "model\0.safetensors"), ("empty", ""), ("dot", "."), ("dots", "..")]:
        yield index(f"P02 {name}", everywhere(file), INDEX, "weight_map")
    for name, value in [("number", 7), ("null", None), ("list", ["x"]), ("object", {})]:
        yield index(f"shard as {name}", everywhere(value), INDEX, "weight_map")
    yield index("P04 two missing shards", lambda d: d.update(weight_map={"a": "x.safetensors", "b": "y.safetensors"}),
                "x.safetensors", "y.safetensors")
    yield index("P05 a tensor that is in no shard", put("weight_map", "surprise", value=SHARD), SHARD, "surprise")
    yield index("P05 a tensor in the other shard", everywhere(SHARD), SHARD)
    yield index("weight_map missing", drop("weight_map"), INDEX, "weight_map")
    for name, value in [("empty", {}), ("a list", []), ("text", "x")]:
        yield index(f"weight_map is {name}", put("weight_map", value=value), INDEX, "weight_map")
    yield index("a shard of 4,000 letters", everywhere("x" * 4000), "xxx")
    yield index("P08 a missing shard named 100,000 times",
                lambda d: d.update(weight_map={f"t{i}": "gone" for i in range(100_000)}), "'gone'")

    def both(folder):
        """Adds a tensor of the first shard to the second."""
        header, data = split((folder / SHARD).read_bytes())
        header["lm_head.weight"] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
        write(SHARD, joined(header, data))(folder)
    yield Case("F42 a tensor in two shards", "shards", both, (SHARD, "lm_head.weight"))


def remove(*names):
    def run(folder):
        for name in names:
            (folder / name).unlink()
    return run


def emptied(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def now_a_file(folder):
    shutil.rmtree(folder)
    folder.write_text("x")


def with_config_alone(folder):
    for file in folder.glob("*.safetensors"):
        file.unlink()


def folders():
    every = ("score", "run", "inspect", "tokenize")
    yield Case("P09 nothing there", "v3", shutil.rmtree, ("expected a Hugging Face folder",), every)
    yield Case("P09 an empty folder", "v3", emptied, ("config.json",), ("score", "run", "inspect"))
    yield Case("P09 a file", "v3", now_a_file, ("model",), ("score", "run", "inspect"))
    yield Case("config.json missing", "v3", remove("config.json"), ("config.json",), ("score", "run", "inspect"))
    yield Case("T01 no tokenizer", "v3", lambda folder: None, ("tokenizer.json",), ("run", "tokenize"))
    yield Case("no weights", "v3", with_config_alone, ("model.safetensors",), ("score", "run"))
    yield Case("P01 a shard missing, no index", "shards", remove(INDEX, SHARD), (SHARD,), ("score", "inspect"))
    yield Case("P04 a shard missing", "shards", remove(SHARD), (SHARD,), ("score", "inspect"))

    yield Case("P09 missing, with a name that is no UTF-8", "v3", lambda folder: None, ("\\xff", "expected"), every,
               sub=NOT_UTF8)

    def mixed(folder):
        (folder / INDEX).unlink()
        os.rename(folder / SHARD, folder / "model-00002-of-00003.safetensors")
    yield Case("P01 shards of two checkpoints", "shards", mixed, ("-of-00002", "-of-00003"))


# --- tokenizers ------------------------------------------------------------------------------------------------------

def tokenizer(name, change, *words):
    return Case(f"tokenizer.json: {name}", "tiny", edit_json("tokenizer.json", change), ("tokenizer.json", *words),
                ("run", "tokenize"))


def step(value):
    return lambda d: d["pre_tokenizer"]["pretokenizers"].insert(0, value)


def pattern(regex):
    return step({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False})


def added(**fields):
    token = {"id": 1394, "content": "<x>", "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
             "special": True}
    return lambda d: d["added_tokens"].append({**token, **fields})


def tokenizers():
    for key in ("model", "pre_tokenizer", "decoder"):
        yield tokenizer(f"{key} missing", drop(key), key)
        yield tokenizer(f"{key} is text", put(key, value="BPE"), key)
    for key in ("vocab", "merges"):
        yield tokenizer(f"{key} missing", drop("model", key), key)
        yield tokenizer(f"{key} is text", put("model", key, value="x"), key)
    for key, value in [("dropout", 0.1), ("continuing_subword_prefix", "##"),
                       ("end_of_word_suffix", "</w>"), ("type", "Unigram"), ("ignore_merges", "no")]:
        yield tokenizer(f"model.{key} = {value!r}", put("model", key, value=value), key if key != "type" else "Unigram")
    for name, value in [("T02 taken", 300), ("T03 negative", -1), ("T03 2^40", 2**40), ("T03 far away", 2**23),
                        ("text", "7"),
                        ("fraction", 1.5), ("2^63", 2**63)]:
        yield tokenizer(f"id {name}", put("model", "vocab", "surprise", value=value), "surprise")
    yield tokenizer("T07 no token for a byte", lambda d: d["model"]["vocab"].pop("Ā"), "0x00")
    for name, merge in [("T04 unknown token", "zzzz q"), ("T05 one part", "a"), ("T05 three parts", "a b c"),
                        ("empty", ""), ("a space", " "),
                        ("number", 7), ("pair of numbers", [1, 2]), ("triple", ["a", "b", "c"])]:
        yield tokenizer(f"merge: {name}", lambda d, m=merge: d["model"]["merges"].append(m), "merges")
    for name, fields in [("T11 empty", {"content": ""}), ("T11 10 MB", {"content": "x" * 10_000_000}),
                         ("number", {"content": 7}),
                         ("id gap", {"id": 4000}), ("negative id", {"id": -1}), ("taken id", {"id": 300}),
                         ("flag as text", {"special": "yes"})]:
        yield tokenizer(f"added token: {name}", added(**fields), "added_tokens")
    yield tokenizer("added token twice", lambda d: (added()(d), added(id=1395)(d)), "<x>", "twice")
    yield tokenizer("T09 normalizer", put("normalizer", value={"type": "NFC"}), "NFC")
    yield tokenizer("T09 pre-tokenizer", step({"type": "Metaspace"}), "Metaspace")
    yield tokenizer("T09 decoder", put("decoder", value={"type": "WordPiece"}), "WordPiece")
    yield tokenizer("T09 post-processor", put("post_processor", value={"type": "RobertaProcessing"}),
                    "RobertaProcessing")
    yield tokenizer("T09 65 steps", lambda d: [step({"type": "Digits"})(d) for _ in range(65)], "pretokenizers")
    for name, regex, word in [("back reference", "(a)\\1", "\\1"), ("recursion", "(?R)", "group"),
                              ("open group", "(a", "byte"),
                              ("verb", "(*LIMIT_MATCH=1)a", "group"), ("possessive interval", "a{1,2}+", "quantifiers"),
                              ("lookbehind without bound", "(?<=a+)b", "lookbehind"),
                              ("repeat of repeats", "(?:(?:(?:a{999}){999}){999}){999}", "large"),
                              ("60,000 groups", "(" * 60_000 + ")" * 60_000, "16384"),
                              ("10 MB", "\\d" * 5_000_000, "16384"),
                              ("nested 5,000 deep", "(" * 5_000 + ")" * 5_000, "pre_tokenizer step 1"),
                              ("not UTF-8 escape", "\\xff", "code point"),
                              ("surrogate", "\\x{d800}", "code point"),
                              ("unknown property", "\\p{Klingon}", "Klingon")]:
        yield tokenizer(f"T10 {name}", pattern(regex), word)
    yield Case("T10 a pattern that gives up", "tiny", edit_json("tokenizer.json", pattern("(?:a+)+$")),
               ("(?:a+)+$", "shorten the text"), ("hostile",))
    for key, value in [("bos_token", "<none>"), ("eos_token", 7), ("add_bos_token", "yes")]:
        yield Case(f"tokenizer_config.json: {key} = {value!r}", "tiny",
                   edit_json("tokenizer_config.json", put(key, value=value)),
                   ("tokenizer_config.json", key), ("run",))
    for value in (7, True, [7], [{"name": "rag", "template": ""}], {"rag": "x"}, {"default": 7}):
        yield Case(f"tokenizer_config.json: chat_template = {value!r}", "tiny",
                   edit_json("tokenizer_config.json", put("chat_template", value=value)),
                   ("tokenizer_config.json", "chat_template"), ("chat",))


def tiktoken():
    def lines(change):
        def run(folder):
            write("tiktoken.model", "\n".join(change((folder / "tiktoken.model").read_text().split("\n"))))(folder)
        return run
    for name, change, word in [("no space", lambda l: ["AAAA"] + l, "line 1"),
                               ("no base64", lambda l: ["!!!! 0"] + l, "line 1"),
                               ("negative rank", lambda l: ["YQ== -1"] + l, "line 1"),
                               ("rank 2^40", lambda l: [f"YQ== {2**40}"] + l, "line 1"),
                               ("twice", lambda l: l + [l[0]], "line"),
                               ("a gap", lambda l: l[:-2] + l[-1:], "tiktoken.model"),
                               ("a missing byte", lambda l: l[1:], "tiktoken.model"),
                               ("a token of 10 MB", lambda l: [base64.b64encode(b"x" * 10_000_000).decode() + " 0"] + l,
                                "line 1"),
                               ("empty", lambda l: [], "tiktoken.model")]:
        yield Case(f"tiktoken.model: {name}", "kimi", lines(change), ("tiktoken.model", word), ("run", "tokenize"))
    yield Case("tiktoken.model: no config", "kimi", remove("tokenizer_config.json"), ("tokenizer_config.json",),
               ("run",))
    yield Case("tiktoken.model: config without names", "kimi",
               write("tokenizer_config.json", '{"added_tokens_decoder": {"x": {}}}'),
               ("tokenizer_config.json",), ("run",))


# --- odd, but good ---------------------------------------------------------------------------------------------------

def unaligned(blob):
    header, data = split(blob)
    text = json.dumps(header)
    return joined(text + " " * (len(text) % 2 == 0), data)


def as_link(folder):
    target = folder.parent / "blob"
    os.rename(folder / "config.json", target)
    (folder / "config.json").symlink_to(target)


def good():
    for name, base, change in [("C10 max_position 10^12", "v3",
                                edit_json("config.json", put("max_position_embeddings", value=10**12))),
                               ("C15 auto_map", "v3",
                                edit_json("config.json", put("auto_map", value={"AutoModel": "evil.Model"}))),
                               ("C16 unknown keys", "v3", edit_json("config.json", put("surprise", value=[{}]))),
                               ("C14 several stop tokens", "v3",
                                edit_json("config.json", put("eos_token_id", value=[1, 2]))),
                               ("F36 all weights zero", "v3", tensors(lambda h, d: bytes(len(d)))),
                               ("F37 unaligned data", "v3", bytes_of(unaligned)),
                               ("F24 an empty tensor of old exports", "v3",
                                add("model.layers.0.rotary_emb.inv_freq",
                                    {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})),
                               ("P01 no index", "shards", remove(INDEX)), ("P03 links", "v3", as_link),
                               ("P06 total_size lies", "shards",
                                edit_json(INDEX, put("metadata", value={"total_size": 7})))]:
        yield Case(f"good: {name}", base, change, (), ("score", "inspect"), code=0)
    for key, value in [("unk_token", "<unk>"), ("fuse_unk", True), ("byte_fallback", True)]:
        yield Case(f"good: T09 model.{key} = {value!r}", "tiny",
                   edit_json("tokenizer.json", put("model", key, value=value)), (), ("run", "tokenize", "chat"), code=0)
    for key, value in [("pad_token", {"text": "x"}), ("unk_token", 7), ("extra_special_tokens", ["<x>"])]:
        yield Case(f"good: tokenizer_config.json: {key} = {value!r}", "tiny",
                   edit_json("tokenizer_config.json", put(key, value=value)), (), ("run", "chat"), code=0)
    yield Case("good: T06 a merge of itself", "tiny",
               edit_json("tokenizer.json", lambda d: d["model"]["merges"].append("t h")), (), ("run",), code=0)


    def moved(folder):
        (folder / NOT_UTF8).mkdir()
        for file in list(folder.glob("*.*")):
            os.rename(file, folder / NOT_UTF8 / file.name)
    yield Case("good: P09 a name that is no UTF-8", "v3", moved, (), ("score", "inspect"), code=0, sub=NOT_UTF8)


def all_cases():
    for part in (indexes, folders, tokenizers, tiktoken, good):
        yield from part()
