"""Malformed checkpoints as data: each case breaks one thing in a copy of a good checkpoint and lists the words that the
refusal must contain. malformed_checkpoints.py runs the cases. Ids like F12 refer to docs/bad_input.md.
"""
import json
import os
import struct
from dataclasses import dataclass
from typing import Callable

DEEP = 1_000_000


@dataclass
class Case:
    name: str
    base: str  # "v3", "shards", "fp8", "pack4", "gptq", "int8": small checkpoints without a tokenizer; "tiny", "kimi": with one
    change: Callable
    words: tuple
    commands: tuple = ("score",)
    code: int = 2
    sub: str = ""  # the model is this folder inside the checkpoint's


def edit_json(name, change):
    def run(folder):
        document = json.loads((folder / name).read_text())
        change(document)
        (folder / name).write_text(json.dumps(document))
    return run


def write(name, content):
    def run(folder):
        path = folder / name
        path.unlink(missing_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return run


def put(*path, value):
    """Sets document[path[0]][path[1]]… to value."""
    def change(document):
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value
    return change


def drop(*path):
    def change(document):
        for key in path[:-1]:
            document = document[key]
        del document[path[-1]]
    return change


def replaced(name, kind):
    """Replaces a file by something that is not a regular file."""
    def run(folder):
        path = folder / name
        path.unlink(missing_ok=True)
        {"directory": path.mkdir, "pipe": lambda: os.mkfifo(path), "device": lambda: path.symlink_to("/dev/zero"),
         "dangling": lambda: path.symlink_to("nowhere")}[kind]()
    return run


# --- config.json -----------------------------------------------------------------------------------------------------

REQUIRED = ["hidden_size", "num_attention_heads", "kv_lora_rank", "num_hidden_layers", "vocab_size",
            "intermediate_size",
            "max_position_embeddings", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "moe_intermediate_size"]
WRONG_SIZES = {"text": "12", "null": None, "zero": 0, "negative": -1, "fraction": 1.5, "list": [1], "2^40+1": 2**40 + 1,
               "2^63": 2**63, "1e308": 1e308}


def config(name, change, *words, commands=("score",)):
    return Case(f"config: {name}", "v3", edit_json("config.json", change), ("config.json", *words), commands)


def config_sizes():
    for key in REQUIRED:
        yield config(f"C01 {key} missing", drop(key), key, commands=("score", "inspect"))
        for kind, value in WRONG_SIZES.items():
            yield config(f"C02-C05 {key} {kind}", put(key, value=value), key)


def config_rules():
    both = ("score", "inspect")
    yes = [("topk_method", "best"), ("scoring_func", "tanh"), ("hidden_act", "gelu"), ("n_group", 5), ("n_group", 0),
           ("topk_group", 5), ("num_experts_per_tok", 0), ("num_experts_per_tok", 13), ("n_routed_experts", -12),
           ("n_routed_experts", 10**9), ("n_shared_experts", -1), ("first_k_dense_replace", 4), ("moe_layer_freq", 0),
           ("routed_scaling_factor", 0), ("routed_scaling_factor", "2"), ("rms_norm_eps", 0), ("rms_norm_eps", -1e-6),
           ("rms_norm_eps", 1e308), ("qk_rope_head_dim", 15), ("q_lora_rank", -1), ("q_lora_rank", "none"),
           ("rope_theta", 0), ("rope_theta", -1e4), ("rope_theta", 1e308), ("eos_token_id", 203),
           ("eos_token_id", [1, -1]), ("eos_token_id", "</s>"), ("bos_token_id", 2**40), ("num_nextn_predict_layers", -1),
           ("attention_bias", "yes"), ("tie_word_embeddings", 1), ("norm_topk_prob", "no"),
           ("rope_scaling", 40), ("index_topk", 2048), ("use_mla", False), ("architectures", "DeepseekV3ForCausalLM"),
           ("architectures", [7]), ("model_type", 3)]
    for key, value in yes:
        yield config(f"{key} = {value!r}", put(key, value=value), key, commands=both)
    for key, value in [("factor", 0), ("factor", -4), ("factor", "nan"), ("original_max_position_embeddings", 0),
                       ("original_max_position_embeddings", None), ("beta_fast", 0), ("beta_slow", 64),
                       ("mscale", -1), ("type", "longrope"), ("type", 4)]:
        word = {"type": "rope_type" if value == "longrope" else "type", "beta_slow": "beta_fast"}.get(key, key)
        yield config(f"C09 rope_scaling.{key} = {value!r}", put("rope_scaling", key, value=value), word)
    for name, quant, word in [("method", {"quant_method": "bitsandbytes"}, "bitsandbytes"),
                              ("bits", {"quant_method": "gptq", "bits": 3, "group_size": 16}, "bits"),
                              ("group", {"quant_method": "awq", "bits": 4, "group_size": 0}, "group_size"),
                              ("groups", {"quant_method": "compressed-tensors", "format": "int-quantized"},
                               "config_groups"),
                              ("fmt", {"quant_method": "fp8", "fmt": "e5m2"}, "e5m2"),
                              ("type", "fp8", "quantization_config"), ("no method", {}, "unnamed"),
                              ("block", {"quant_method": "fp8", "weight_block_size": [0, 128]}, "weight_block_size"),
                              ("block list", {"quant_method": "fp8", "weight_block_size": 128}, "weight_block_size")]:
        yield config(f"C13 quantization {name}", put("quantization_config", value=quant), word)
    yield config("C12 unknown model_type", put("model_type", value="llama"), "llama", "deepseek_v3", commands=both)
    yield config("C12 unknown architecture", put("architectures", value=["LlamaForCausalLM"]), "LlamaForCausalLM")
    yield config("C12 no name at all", lambda d: (d.pop("model_type"), d.pop("architectures")), "model_type")
    yield config("C12 name with control characters", put("model_type", value="a\nb\u001b[2J"), "a\\x0ab\\x1b")
    yield config("C17 another vocabulary", put("vocab_size", value=204), "embed_tokens", "204", "203")
    yield config("C17 another layer", put("num_hidden_layers", value=4), "model.layers.3.")
    yield config("C17 another expert", put("n_routed_experts", value=16), "mlp.experts.12.")
    yield config("C20 larger than counts",
                 lambda d: d.update(hidden_size=2**20, intermediate_size=2**24, n_routed_experts=30000,
                                    moe_intermediate_size=2**24, num_hidden_layers=10),
                 "parameters")


JSON_DOORS = ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json",
              "model.safetensors.index.json"]


def json_documents():
    """Inputs that every JSON reader refuses with the name of the file."""
    documents = {"empty": "", "cut short": '{"a": [1, 2', "an array": "[]", "a number": "7", "trailing": "{} {}",
                 "a comment": "{} // x", "NaN": '{"hidden_size": NaN}', "a literal": '{"a": nul}',
                 "1e999": '{"a": 1e999}',
                 "twice the same key": '{"a": 1, "a": 2}', "not UTF-8": b'{"\xff\xfe": 1}',
                 "UTF-16": '{"a": 1}'.encode("utf-16"),
                 "lone surrogate": '{"a": "\\ud800"}', "raw control character": '{"a": "\n"}',
                 "deep arrays": "[" * DEEP, "deep objects": '{"a":' * DEEP,
                 "closed deep arrays": "[" * DEEP + "]" * DEEP}
    for door in JSON_DOORS:
        base = "shards" if door.endswith("index.json") else "tiny"
        command = ("score",) if base == "shards" or door == "config.json" else ("run",)
        for kind, text in documents.items():
            yield Case(f"{door}: {kind}", base, write(door, text), (door,), command)
    yield Case("config.json: 17 MB", "v3", write("config.json", " " * (17 << 20)), ("config.json", "16777216"))
    yield Case("index: more than 64 MB", "shards", write("model.safetensors.index.json", " " * (65 << 20)),
               ("index.json", "67108864"))
    yield Case("tokenizer.json: five million elements", "tiny", write("tokenizer.json", "[" + "0," * 5_000_000 + "0]"),
               ("tokenizer.json", "4000000"), ("run",))
    yield Case("header: deep", "v3", header_text("{" + '"a":' + "[" * DEEP), ("model.safetensors", "deeper"))
    yield Case("header: deep objects", "v3", header_text('{"a":' * DEEP), ("model.safetensors", "deeper"))


def not_files():
    for kind in ("directory", "pipe", "device", "dangling"):
        for name, base, command in [("config.json", "v3", "inspect"), ("model.safetensors", "v3", "score"),
                                    ("model.safetensors", "v3", "inspect"),
                                    ("model.safetensors.index.json", "shards", "score"),
                                    ("model-00002-of-00002.safetensors", "shards", "score"),
                                    ("generation_config.json", "v3", "score"), ("tokenizer.json", "tiny", "run"),
                                    ("tokenizer_config.json", "tiny", "run"), ("chat_template.jinja", "tiny", "run"),
                                    ("tiktoken.model", "kimi", "run")]:
            yield Case(f"F34 {name} is a {kind} ({command})", base, replaced(name, kind), (name,), (command,))


# --- safetensors -----------------------------------------------------------------------------------------------------

def split(blob):
    size = struct.unpack("<Q", blob[:8])[0]
    return json.loads(blob[8:8 + size]), blob[8 + size:]


def joined(header, data):
    text = header if isinstance(header, (str, bytes)) else json.dumps(header)
    text = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(text)) + text + data


def tensors(change, name="model.safetensors"):
    """change(header, data) may edit the header in place and may return new data."""
    def run(folder):
        header, data = split((folder / name).read_bytes())
        changed = change(header, data)
        write(name, joined(header, data if changed is None else changed))(folder)
    return run


def header_text(text):
    return write("model.safetensors", joined(text, b""))


def entry(name, **fields):
    return tensors(lambda header, data: header[name].update(fields))


def weights(name, change, *words, base="v3", code=2):
    return Case(f"weights: {name}", base, change, ("model", *words), code=code)


def bytes_of(change):
    def run(folder):
        path = folder / "model.safetensors"
        blob = path.read_bytes()
        write("model.safetensors", change(blob))(folder)
    return run


NORM = "model.norm.weight"  # [56] F32
ROUTER = "model.layers.1.mlp.gate.weight"
BIAS = "model.layers.1.mlp.gate.e_score_correction_bias"
EXPERT = "model.layers.2.mlp.experts.11.up_proj.weight"
UNUSED = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}


def without(name):
    """The checkpoint without one tensor, rewritten without a gap."""
    def change(header, data):
        packed, rest = b"", {}
        for key, value in header.items():
            if key in (name, "__metadata__"):
                continue
            begin, end = value["data_offsets"]
            rest[key] = {**value, "data_offsets": [len(packed), len(packed) + end - begin]}
            packed += data[begin:end]
        header.clear()
        header.update(rest)
        return packed
    return tensors(change)


def add(name, value, data=b""):
    return tensors(lambda header, old: (header.__setitem__(name, value), old + data)[1])


def safetensors_bytes():
    for name, change in [("F01 empty", lambda b: b""), ("F02 seven bytes", lambda b: b[:7]),
                         ("F03 length 2^64-1", lambda b: b"\xff" * 8 + b[8:]),
                         ("F04 length 2^63", lambda b: struct.pack("<Q", 2**63) + b[8:]),
                         ("F05 length behind the end", lambda b: struct.pack("<Q", len(b) - 7) + b[8:]),
                         ("F06 length above the cap", lambda b: struct.pack("<Q", 100_000_001) + b[8:]),
                         ("F07 length 0", lambda b: struct.pack("<Q", 0)),
                         ("F08 not UTF-8", lambda b: joined(b'{"\xff": 1}', b"")),
                         ("F09 not JSON", lambda b: joined("{not json}", b"")),
                         ("F09 cut in the header", lambda b: b[:4000]),
                         ("F10 an array", lambda b: joined("[]", b"")),
                         ("F11 spaces first", lambda b: joined(b" " + b[8:8 + struct.unpack("<Q", b[:8])[0]], b"")),
                         ("F12 a name twice", lambda b: joined('{"a":%s,"a":%s}' % ((json.dumps(UNUSED),) * 2), b"")),
                         ("F19 trailing bytes", lambda b: b + b"PK\x05\x06" + bytes(18)),
                         ("F32 cut in the data", lambda b: b[:-1]), ("F32 half", lambda b: b[:len(b) // 2]),
                         ("F38 big-endian length", lambda b: b[7::-1] + b[8:]),
                         ("F38 zip", lambda b: b"PK\x03\x04" + b[4:]),
                         ("F38 pickle", lambda b: b"\x80\x02}q\x00." * 100),
                         ("F38 GGUF", lambda b: b"GGUF" + bytes(1000)),
                         ("F38 Git LFS pointer", lambda b: b"version https://git-lfs.github.com/spec/v1\n")]:
        yield weights(name, bytes_of(change), "model.safetensors")


def safetensors_entries():
    for name, fields in [("F14 end before begin", {"data_offsets": [224, 0]}),
                         ("F15 begin behind the end", {"data_offsets": [2**40, 2**40 + 224]}),
                         ("F16 end behind the end", {"data_offsets": [0, 2**31]}),
                         ("F14 negative begin", {"data_offsets": [-224, 0]}),
                         ("F14 one offset", {"data_offsets": [0]}),
                         ("F14 offsets as text", {"data_offsets": ["0", "224"]}),
                         ("F14 offsets 2^63", {"data_offsets": [0, 2**63]}),
                         ("F14 offset 1e30", {"data_offsets": [0, 1e30]}),
                         ("F20 more elements than bytes", {"shape": [57]}),
                         ("F21 product wraps", {"shape": [2**32, 2**32]}),
                         ("F22 negative", {"shape": [-56]}), ("F22 two negatives", {"shape": [-7, -8]}),
                         ("F22 fraction", {"shape": [56.5]}),
                         ("F22 text", {"shape": ["56"]}), ("F22 1e30", {"shape": [1e30]}),
                         ("F22 no list", {"shape": 56}),
                         ("F24 dimension 0", {"shape": [0]}), ("F25 unknown dtype", {"dtype": "F7"}),
                         ("F25 dtype 16", {"dtype": 16}),
                         ("F25 dtype with a newline", {"dtype": "F\n32"})]:
        yield weights(name, entry(NORM, **fields), "model.safetensors", NORM)
    for key in ("dtype", "shape", "data_offsets"):
        yield weights(f"entry without {key}", tensors(lambda h, d, k=key: h[NORM].pop(k) and None), key)
    yield weights("entry is no object", tensors(lambda h, d: h.__setitem__(NORM, [])), NORM)
    yield weights("metadata is no object", tensors(lambda h, d: h.__setitem__("__metadata__", [])), "__metadata__")
    yield weights("metadata of numbers", tensors(lambda h, d: h.__setitem__("__metadata__", {"a": 1})), "__metadata__")
    yield weights("F17 overlap", tensors(lambda h, d: h[NORM].update(data_offsets=[0, 224])), "overlap")
    yield weights("F18 hole", tensors(lambda h, d: h.pop(EXPERT) and None), "hole")
    yield weights("F23 scalar", entry(NORM, shape=[], dtype="F32", data_offsets=[0, 4]), "model.safetensors")
    yield weights("F23 rank 9", entry(NORM, shape=[56] + [1] * 8), NORM, "[56, 1, 1, 1, 1, 1, 1, 1, 1]")
    yield weights("F25 unknown dtype, unused tensor", add("unused", {**UNUSED, "dtype": "F7"}), "unused", "F7")
    yield weights("F26 integers", entry(NORM, shape=[56], dtype="I32"), NORM, "I32")
    yield weights("F30 a name of a megabyte", add("x" * (1 << 20), UNUSED), "xxx…")
    yield weights("F30 a name of control characters", add("a\n\0b\u007f", UNUSED), "a\\x0a\\x00b\\u007f")
    yield weights("F30 a name like a path", add("../../etc/passwd", UNUSED), "../../etc/passwd")
    yield weights("F31 elements without end", header_text('{"a":[' + "0," * 2_000_000 + "0]}"), "2000000")
    yield weights("extra tensor", add("model.layers.0.surprise", UNUSED), "surprise")


def safetensors_model():
    for name in (NORM, ROUTER, BIAS, EXPERT, "lm_head.weight", "model.embed_tokens.weight",
                 "model.layers.0.self_attn.kv_b_proj.weight", "model.layers.1.mlp.shared_experts.down_proj.weight"):
        yield weights(f"F39-F41 {name} missing", without(name), name)
    yield weights("F39 expert of another shape", tensors(lambda h, d: h[EXPERT]["shape"].reverse()), EXPERT)
    yield weights("F40 kv_b_proj of another shape",
                  tensors(lambda h, d: h["model.layers.0.self_attn.kv_b_proj.weight"]["shape"].reverse()),
                  "kv_b_proj", "[32, 96]")
    scales = "model-00002-of-00002.safetensors"
    scale = "model.layers.0.mlp.up_proj.weight_scale_inv"
    yield weights("F28 scales of another shape", tensors(lambda h, d: h[scale]["shape"].append(1), scales), scale,
                  base="fp8")
    for kind, value in [("NaN", float("nan")), ("zero", 0.0), ("infinite", float("inf")), ("negative", -1.0)]:
        def poison(header, data, value=value):
            at = header[scale]["data_offsets"][0]
            return data[:at] + struct.pack("<f", value) + data[at + 4:]
        yield weights(f"F29 {kind} scale", tensors(poison, scales), scale, "[0, 0]", base="fp8")
    yield weights("F27 fp8 without quantization_config", edit_json("config.json", drop("quantization_config")),
                  "_scale_inv", base="fp8")


def integer_weights():
    up = "model.layers.0.mlp.up_proj"
    for base, parts in [("int8", [".weight_scale"]), ("pack4", [".weight_packed", ".weight_scale"]),
                        ("gptq", [".qweight", ".scales", ".qzeros"])]:
        for part in parts:
            yield weights(f"F43 {base} without {part}", without(up + part), up, base=base)
            yield weights(f"F43 {base} {part} of another shape",
                          tensors(lambda h, d, n=up + part: h[n]["shape"].reverse()), up + part, base=base)
    yield weights("F43 groups of another size",
                  edit_json("config.json", put("quantization_config", "config_groups", "group_0", "weights",
                                               "group_size", value=32)), "weight_scale", base="pack4")
    yield weights("F43 int8 without quantization_config", edit_json("config.json", drop("quantization_config")),
                  "weight_scale", base="int8")
    for name, group, words in [("out of range", 99, ("g_idx", "found 99 at [0]")),
                               ("out of order", 2, ("g_idx", "desc_act")), ("negative", -1, ("found -1 at [0]",))]:
        def change(header, data, group=group):
            at = header[up + ".g_idx"]["data_offsets"][0]
            return data[:at] + struct.pack("<i", group) + data[at + 4:]
        yield weights(f"F44 columns {name}", tensors(change), *words, base="gptq")


def all_cases():
    for part in (config_sizes, config_rules, json_documents, not_files, safetensors_bytes, safetensors_entries,
                 safetensors_model, integer_weights):
        yield from part()
