"""Models that recite: after a given token they write a given text and end, at any temperature. So a test knows what the parsers of
reasoning and calls read. A token's row of the embedding is the direction that its successor's row of the head looks for; all other
weights are 0."""
import json
import pathlib
import random
import struct

WIDTH = 128
BOS, EOS, USER, ASSISTANT = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"
PIECE_BYTES = 5


def letters():
    """The letter of each byte in a byte-level vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in plain else chr(next(others)) for byte in range(256)]


def pieces(text, taken):
    """`text` in pieces that no other text has."""
    data, out = text.encode(), []
    while data:
        size = next((size for size in range(PIECE_BYTES, len(data)) if data[:size] not in taken), len(data))
        piece, data = data[:size], data[size:]
        while piece in taken and out:  # the end of the text is the end of another one, too
            piece = out.pop() + piece
        taken.add(piece)
        out.append(piece)
    return out


def template(texts, mark=""):
    """A chat template: the last message is the name of the text that follows. `mark` shows the format of its calls."""
    choose = "".join(f"{{% if messages[-1].content == '{name}' %}}<|{name}|>{{% endif %}}" for name in texts)
    calls = "{% for c in m.tool_calls or [] %}({{ c.function.name }} {{ c.function.arguments | tojson }}){% endfor %}"
    messages = "{% for m in messages %}{{ m.content or '' }}" + calls + "{% endfor %}"
    return (f"{{# {mark} #}}{{{{ bos_token }}}}{{% if tools %}}{{{{ tools | tojson }}}}{{% endif %}}{messages}"
            f"{{% if add_generation_prompt %}}{choose}{{% endif %}}")


def shapes(size, config):
    """Of each tensor but embedding, head and last norm."""
    heads, latent, rope = config["num_attention_heads"], config["kv_lora_rank"], config["qk_rope_head_dim"]
    layer, mlp = "model.layers.0.", config["intermediate_size"]
    head_width = config["qk_nope_head_dim"] + rope
    own = {"input_layernorm": (WIDTH,), "post_attention_layernorm": (WIDTH,), "self_attn.q_a_proj": (config["q_lora_rank"], WIDTH),
           "self_attn.q_a_layernorm": (config["q_lora_rank"],), "self_attn.q_b_proj": (heads * head_width, config["q_lora_rank"]),
           "self_attn.kv_a_proj_with_mqa": (latent + rope, WIDTH), "self_attn.kv_a_layernorm": (latent,),
           "self_attn.kv_b_proj": (heads * (config["qk_nope_head_dim"] + config["v_head_dim"]), latent),
           "self_attn.o_proj": (WIDTH, heads * config["v_head_dim"]), "mlp.gate_proj": (mlp, WIDTH), "mlp.up_proj": (mlp, WIDTH),
           "mlp.down_proj": (WIDTH, mlp)}
    out = {f"{layer}{name}.weight": shape for name, shape in own.items()}
    if "index_topk" in config:
        width, indexer = config["index_head_dim"], layer + "self_attn.indexer."
        out |= {indexer + "wq_b.weight": (config["index_n_heads"] * width, config["q_lora_rank"]), indexer + "wk.weight": (width, WIDTH),
                indexer + "k_norm.weight": (width,), indexer + "k_norm.bias": (width,),
                indexer + "weights_proj.weight": (config["index_n_heads"], WIDTH)}
    return out


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, data in tensors.values()))


def write_tokenizer(folder, vocabulary, added, chat_template):
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    pattern = " ?\\p{L}+| ?[^\\s\\p{L}]+|\\s+"
    steps = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
             {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]
    byte_level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None,
        "added_tokens": [{"id": number, "content": text, "special": "think" not in text, **flags} for text, number in added.items()],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}, "post_processor": byte_level, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": []}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "add_bos_token": True, "add_eos_token": False, "bos_token": BOS, "eos_token": EOS, "unk_token": None,
        "tokenizer_class": "LlamaTokenizerFast", **({"chat_template": chat_template} if chat_template else {})}))


def write_reciter(folder, texts, chat_template=None, **config):
    """Writes a model that writes texts[token] after `token`. A name becomes the token <|name|>; a token has its own marks."""
    folder = pathlib.Path(folder)
    folder.mkdir()
    letter = letters()
    starts = {name: name if name.startswith("<") else f"<|{name}|>" for name in texts}
    names = list(dict.fromkeys([BOS, EOS, USER, ASSISTANT, "<think>", "</think>", *starts.values()]))
    taken = {bytes([byte]) for byte in range(256)} | {name.encode() for name in names}
    recited = {name: pieces(text, taken) for name, text in texts.items()}
    vocabulary = {}
    for piece in [bytes([byte]) for byte in range(256)] + [piece for text in recited.values() for piece in text]:
        vocabulary["".join(letter[byte] for byte in piece)] = len(vocabulary)
    added = {name: len(vocabulary) + i for i, name in enumerate(names)}
    size = len(vocabulary) + len(names)
    number = lambda piece: vocabulary["".join(letter[byte] for byte in piece)]  # noqa: E731
    source = random.Random(7)
    rows = [[source.choice((-1.0, 1.0)) for _ in range(WIDTH)] for _ in range(size)]
    head = [[0.0] * WIDTH for _ in range(size)]
    for name, text in recited.items():
        ids = [added[starts[name]], *map(number, text), added[EOS]]
        for before, after in zip(ids, ids[1:]):
            head[after] = [a + b for a, b in zip(head[after], rows[before])]
    config = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "torch_dtype": "float32", "hidden_act": "silu",
              "vocab_size": size, "hidden_size": WIDTH, "intermediate_size": 16, "moe_intermediate_size": 16, "num_hidden_layers": 1,
              "num_attention_heads": 2, "num_key_value_heads": 2, "q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
              "qk_rope_head_dim": 8, "v_head_dim": 8, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1,
              "topk_group": 1, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True, "routed_scaling_factor": 1.0,
              "first_k_dense_replace": 1, "moe_layer_freq": 1, "max_position_embeddings": 2048, "rope_theta": 10000.0, "rope_scaling": None,
              "rms_norm_eps": 1e-6, "attention_bias": False, "tie_word_embeddings": False, "bos_token_id": added[BOS],
              "eos_token_id": added[EOS], **config}
    (folder / "config.json").write_text(json.dumps(config))
    matrix = lambda table: b"".join(struct.pack(f"<{WIDTH}f", *row) for row in table)  # noqa: E731
    tensors = {"model.embed_tokens.weight": ((size, WIDTH), matrix(rows)), "lm_head.weight": ((size, WIDTH), matrix(head)),
               "model.norm.weight": ((WIDTH,), struct.pack("<f", 1.0) * WIDTH)}
    for name, shape in shapes(size, config).items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = (shape, struct.pack("<f", float("norm.weight" in name)) * count)
    write_tensors(folder / "model.safetensors", tensors)
    write_tokenizer(folder, vocabulary, added, chat_template)
    return str(folder)
