"""Writes a training checkpoint as a Hugging Face folder: bf16 safetensors, config, tokenizer.

Tensor names and shapes are those of the DeepSeek-V3 checkpoints; the MTP layer is
model.layers.<num_hidden_layers>, without copies of the embedding and the head, which it shares.
Files are written beside their place and then renamed, so a reader never sees half a file.
"""

import argparse
import json
import os
import shutil
import struct

import torch

import model as tiny


def checkpoint_tensors(state):
    """state_dict -> Hugging Face name -> tensor; matrices bf16, the router bias fp32."""
    tensors = {}
    for name, value in state.items():
        if name.endswith("experts.gate_up_proj"):
            prefix = name.removesuffix("gate_up_proj")
            for expert, rows in enumerate(value):
                gate, up = rows.chunk(2)
                tensors[f"{prefix}{expert}.gate_proj.weight"] = gate
                tensors[f"{prefix}{expert}.up_proj.weight"] = up
        elif name.endswith("experts.down_proj"):
            prefix = name.removesuffix("down_proj")
            for expert, rows in enumerate(value):
                tensors[f"{prefix}{expert}.down_proj.weight"] = rows
        else:
            tensors[name] = value
    return {name: (value.float() if name.endswith("e_score_correction_bias")
                   else value.to(torch.bfloat16)).contiguous()
            for name, value in tensors.items()}


def write_safetensors(path, tensors):
    """safetensors: u64 header length, JSON header padded to 8 bytes, data; fp32 tensors first."""
    names = sorted(tensors, key=lambda name: (tensors[name].dtype != torch.float32, name))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name in names:
        size = tensors[name].numel() * tensors[name].element_size()
        header[name] = dict(dtype="F32" if tensors[name].dtype == torch.float32 else "BF16",
                            shape=list(tensors[name].shape), data_offsets=[offset, offset + size])
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            file.write(tensors[name].view(torch.uint8).numpy().tobytes())


def load_folder(folder):
    """The model of an exported folder in fp32 (the bf16 values, widened), ready to evaluate."""
    from safetensors.torch import load_file
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    tensors = load_file(os.path.join(folder, "model.safetensors"))
    network = tiny.TinyModel(config)
    state = network.state_dict()
    for name in state:
        if name.endswith("experts.gate_up_proj"):
            prefix = name.removesuffix("gate_up_proj")
            value = torch.stack([torch.cat((tensors[f"{prefix}{e}.gate_proj.weight"],
                                            tensors[f"{prefix}{e}.up_proj.weight"]))
                                 for e in range(config["n_routed_experts"])])
        elif name.endswith("experts.down_proj"):
            prefix = name.removesuffix("down_proj")
            value = torch.stack([tensors[f"{prefix}{e}.down_proj.weight"]
                                 for e in range(config["n_routed_experts"])])
        else:
            value = tensors[name]
        state[name] = value.float()
    network.load_state_dict(state)
    return network.eval()


def export(state, config, tokenizer_folder, out, training):
    """Writes every file of the folder `out`, each by an atomic rename.

    training: what evaluate.py needs to write the corpus again (seed, phases).
    """
    os.makedirs(out, exist_ok=True)

    def place(name, write):
        write(os.path.join(out, f".{name}.new"))
        os.replace(os.path.join(out, f".{name}.new"), os.path.join(out, name))

    def as_json(content):
        def write(path):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(content, file, indent=2)
                file.write("\n")
        return write

    for name in ("tokenizer.json", "tokenizer_config.json", "story_grammar.json"):
        if os.path.exists(os.path.join(tokenizer_folder, name)):
            place(name, lambda path: shutil.copyfile(os.path.join(tokenizer_folder, name), path))
    place("config.json", as_json(config))
    place("training.json", as_json(training))
    place("generation_config.json", as_json(dict(
        bos_token_id=config["bos_token_id"], eos_token_id=config["eos_token_id"],
        pad_token_id=config["pad_token_id"], do_sample=True, temperature=0.8, top_p=1.0)))
    place("model.safetensors", lambda path: write_safetensors(path, checkpoint_tensors(state)))


def check_against_transformers(folder):
    """Largest |logit difference| to the model's class in transformers on random tokens, fp32.

    64 tokens; with an indexer, four times as many as a token attends to.
    """
    import transformers
    ours = load_folder(folder)
    theirs = getattr(transformers, ours.config["architectures"][0]).from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager",
        experts_implementation="eager").eval()
    tokens = torch.randint(5, ours.config["vocab_size"], (1, 4 * ours.config.get("index_topk", 16)),
                           generator=torch.Generator().manual_seed(11))
    with torch.no_grad():
        return (ours(tokens) - theirs(tokens).logits).abs().max().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", help="checkpoint.pt of train.py")
    parser.add_argument("--indexer", help="checkpoint.pt of train_indexer.py, with --base")
    parser.add_argument("--base", help="exported folder of tiny, for all but the indexer")
    parser.add_argument("--random", action="store_true", help="random weights, to check the maths")
    parser.add_argument("--tokenizer", help="folder of tokenizer.py")
    parser.add_argument("--out", required=True)
    parser.add_argument("--check", action="store_true", help="compare with transformers")
    args = parser.parse_args()
    if args.random:
        network = tiny.TinyModel(tiny.tiny_config())
        network.init_weights(1)
        for router in network.routers():
            router.e_score_correction_bias.normal_()
        export(network.state_dict(), network.config, args.tokenizer, args.out,
               dict(seed=1, documents=0, phases=[]))
    elif args.checkpoint:
        saved = torch.load(args.checkpoint, map_location="cpu", weights_only=True)
        export(saved["model"], tiny.tiny_config(), args.tokenizer, args.out, saved["state"])
    elif args.indexer:
        saved = torch.load(args.indexer, map_location="cpu", weights_only=True)
        export(load_folder(args.base).state_dict() | saved["model"], tiny.tiny_sparse_config(),
               args.base, args.out, saved["state"])
    sizes = [os.path.getsize(os.path.join(args.out, name)) for name in os.listdir(args.out)]
    print(f"{args.out}: {sum(sizes)} bytes")
    if args.check:
        difference = check_against_transformers(args.out)
        print(f"largest logit difference to transformers: {difference:.3e}")


if __name__ == "__main__":
    main()
