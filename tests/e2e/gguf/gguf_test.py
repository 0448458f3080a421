"""The built-in model as a GGUF file: every command answers as with the folder. Usage: gguf_test.py LATTE_BINARY; needs
only Python's standard library. Values stay bf16, so that answers are equal to the byte.
"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.request

LATTE = None
ROOT = pathlib.Path(__file__).resolve().parents[3]
TINY = ROOT / "models/tiny"
U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
TYPES = {"F32": 0, "BF16": 30}
LAYER = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "eh_proj": "nextn.eh_proj",
    "enorm": "nextn.enorm", "hnorm": "nextn.hnorm", "shared_head.norm": "nextn.shared_head_norm",
    "self_attn.q_a_proj": "attn_q_a", "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_b_proj": "attn_kv_b", "self_attn.o_proj": "attn_output", "mlp.gate": "ffn_gate_inp",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    "mlp.shared_experts.gate_proj": "ffn_gate_shexp", "mlp.shared_experts.up_proj": "ffn_up_shexp",
    "mlp.shared_experts.down_proj": "ffn_down_shexp"}
MODEL = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


PACK = {U32: lambda v: struct.pack("<I", v), F32: lambda v: struct.pack("<f", v), BOOL: lambda v: struct.pack("<?", v),
        STRING: text}


def entry(key, kind, value):
    if isinstance(value, list):
        return text(key) + struct.pack("<IIQ", ARRAY, kind, len(value)) + b"".join(map(PACK[kind], value))
    return text(key) + struct.pack("<I", kind) + PACK[kind](value)


def stored(folder):
    """{name: (dtype, shape, bytes)} of model.safetensors."""
    data = (folder / "model.safetensors").read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[start + t["data_offsets"][0]:start + t["data_offsets"][1]])
            for name, t in header.items()}


def renamed(tensors):
    """The tensors as a GGUF file has them: the experts of a layer in one."""
    out, stacks = {}, {}
    for name, (dtype, shape, data) in tensors.items():
        stem, _, end = name.rpartition(".")
        if expert := re.fullmatch(r"model\.layers\.(\d+)\.mlp\.experts\.(\d+)\.(\w+)_proj", stem):
            layer, number, matrix = expert.groups()
            stacks.setdefault((f"blk.{layer}.ffn_{matrix}_exps.weight", dtype, *shape), {})[int(number)] = data
        elif stem in MODEL:
            out[f"{MODEL[stem]}.{end}"] = dtype, shape, data
        else:
            layer, inner = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", stem).groups()
            bias = end == "e_score_correction_bias"
            out[f"blk.{layer}." + ("exp_probs_b.bias" if bias else f"{LAYER[inner]}.{end}")] = dtype, shape, data
    for (name, dtype, *shape), experts in stacks.items():
        out[name] = dtype, [len(experts), *shape], b"".join(experts[e] for e in range(len(experts)))
    return out


def metadata():
    c = json.loads((TINY / "config.json").read_text())
    file = json.loads((TINY / "tokenizer.json").read_text())
    a, yarn = "deepseek2.", c["rope_scaling"]
    layers = c["num_hidden_layers"] + c["num_nextn_predict_layers"]
    yield from (entry("general.architecture", STRING, "deepseek2"), entry("general.type", STRING, "model"))
    for key, value in {
            "vocab_size": c["vocab_size"], "block_count": layers, "nextn_predict_layers": c["num_nextn_predict_layers"],
            "context_length": c["max_position_embeddings"], "embedding_length": c["hidden_size"],
            "feed_forward_length": c["intermediate_size"], "attention.head_count": c["num_attention_heads"],
            "attention.kv_lora_rank": c["kv_lora_rank"], "attention.q_lora_rank": c["q_lora_rank"],
            "attention.key_length": c["qk_nope_head_dim"] + c["qk_rope_head_dim"],
            "attention.value_length": c["v_head_dim"], "rope.dimension_count": c["qk_rope_head_dim"],
            "rope.scaling.original_context_length": yarn["original_max_position_embeddings"],
            "expert_count": c["n_routed_experts"], "expert_used_count": c["num_experts_per_tok"],
            "expert_shared_count": c["n_shared_experts"], "expert_feed_forward_length": c["moe_intermediate_size"],
            "leading_dense_block_count": c["first_k_dense_replace"], "expert_gating_func": 2,
            "expert_group_count": c["n_group"], "expert_group_used_count": c["topk_group"]}.items():
        yield entry(a + key, U32, value)
    for key, value in {
            "attention.layer_norm_rms_epsilon": c["rms_norm_eps"], "rope.freq_base": c["rope_theta"],
            "expert_weights_scale": c["routed_scaling_factor"], "rope.scaling.factor": yarn["factor"],
            "rope.scaling.yarn_log_multiplier": 0.1 * yarn["mscale_all_dim"],
            "rope.scaling.yarn_beta_fast": yarn["beta_fast"], "rope.scaling.yarn_beta_slow": yarn["beta_slow"]}.items():
        yield entry(a + key, F32, value)
    yield entry(a + "expert_weights_norm", BOOL, c["norm_topk_prob"])
    yield entry(a + "rope.scaling.type", STRING, "yarn")
    tokens = {number: (word, 1) for word, number in file["model"]["vocab"].items()}
    tokens |= {t["id"]: (t["content"], 3 if t["special"] else 4) for t in file["added_tokens"]}
    listed = [tokens.get(i, (f"[PAD{i}]", 5)) for i in range(c["vocab_size"])]
    t = "tokenizer.ggml."
    yield from (entry(t + "model", STRING, "gpt2"), entry(t + "pre", STRING, "deepseek-v3"),
                entry(t + "tokens", STRING, [word for word, _ in listed]),
                entry(t + "token_type", U32, [kind for _, kind in listed]),
                entry(t + "merges", STRING, [m if isinstance(m, str) else " ".join(m) for m in file["model"]["merges"]]),
                entry(t + "bos_token_id", U32, c["bos_token_id"]), entry(t + "eos_token_id", U32, c["eos_token_id"]),
                entry(t + "add_bos_token", BOOL, json.loads((TINY / "tokenizer_config.json").read_text())["add_bos_token"]),
                entry("tokenizer.chat_template", STRING,
                      json.loads((TINY / "tokenizer_config.json").read_text())["chat_template"]))


def write_gguf(path, tensors):
    infos, data = b"", b""
    for name, (dtype, shape, values) in tensors.items():
        data += bytes(-len(data) % 32)
        infos += text(name) + struct.pack("<I", len(shape)) + b"".join(struct.pack("<Q", n) for n in reversed(shape))
        infos += struct.pack("<IQ", TYPES[dtype], len(data))
        data += values
    entries = list(metadata())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + infos
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def latte(*args, stdin=""):
    return subprocess.run([LATTE, *map(str, args)], input=stdin, text=True, capture_output=True, timeout=300)


class Gguf(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.parent = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.parent.cleanup)
        cls.folder = pathlib.Path(cls.parent.name)
        cls.model = cls.folder / "tiny.gguf"
        write_gguf(cls.model, renamed(stored(TINY)))

    def same(self, *args, stdin=""):
        """Runs a command whose argument MODEL is the file, its folder, and the built-in model."""
        answers = []
        for model in (self.model, self.folder, "tiny"):
            done = latte(*(model if arg == "MODEL" else arg for arg in args), stdin=stdin)
            self.assertEqual(done.returncode, 0, done.stderr)
            answers.append(done.stdout)
        self.assertEqual(answers[0], answers[2])
        self.assertEqual(answers[1], answers[2])
        self.assertGreater(len(answers[0]), 8)

    def test_commands_answer_as_with_the_folder(self):
        run = ("run", "MODEL", "-p", "Once upon a time", "--temperature", "0", "--max-tokens", "40")
        self.same(*run)
        self.same(*run, "--draft-tokens", "2", "--cache-dtype", "int8")
        self.same(*run, "--attention", "decompressed", "--check-weights")
        self.same("tokenize", "MODEL", "--text", "Once upon a time, 12 bears — twelve!")
        self.same("score", "MODEL", "--text", "Once upon a time, there was a bear.")
        self.same("chat", "MODEL", "--temperature", "0", "--max-tokens", "20", stdin="Hello\n")

    def test_ranks_read_the_same_file(self):
        if not list(pathlib.Path(LATTE).parent.rglob("liblatte_mpi.so")):
            self.skipTest("built without Open MPI")
        self.same("run", "MODEL", "-p", "Once upon a time", "--temperature", "0", "--max-tokens", "20", "--tp", "2",
                  "--threads", "1")

    def test_the_server_answers_and_keeps_prefixes(self):
        command = [LATTE, "serve", self.model, "--port", "0", "--cache-dir", self.folder / "cache"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                port = next(found[1] for line in server.stderr if (found := re.match(r"listening on .*:(\d+)", line)))
                next(line for line in server.stderr if line.startswith("ready"))
                body = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 20}
                request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", json.dumps(body).encode(),
                                                 {"Content-Type": "application/json"})
                answer = json.load(urllib.request.urlopen(request, timeout=60))
                models = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=60))
            finally:
                server.terminate()
                server.stderr.read()
        story = latte("run", "tiny", "-p", body["prompt"], "--temperature", "0", "--max-tokens", "20").stdout
        self.assertIn(answer["choices"][0]["text"].strip(), story)
        self.assertIn("tiny", models["data"][0]["id"])

    def test_inspect_tells_types_with_tensors_and_bytes(self):
        done = latte("inspect", self.model)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"weights .*BF16 \(\d+ tensors, [\d.]+ MB\), F32 \(\d+ tensors?, ")
        self.assertIn("the checkpoint's template", done.stdout)

    def test_quantize_refuses_it(self):
        done = latte("quantize", self.model, self.folder / "out", "--to", "int8")
        self.assertEqual(done.returncode, 2)
        self.assertIn("blocks", done.stderr)


if __name__ == "__main__":
    LATTE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
