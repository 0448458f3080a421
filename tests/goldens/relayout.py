"""Rewrites a checkpoint in the layouts of other tools: stacked experts, prefixed names, wrapped configs."""

import re

import numpy as np

_EXPERT = re.compile(r"(.*\.mlp\.experts)\.(\d+)\.(gate|up|down)_proj\.weight")


def fuse_experts(tensors):
    """Experts of a layer in two tensors: gate_up_proj [E, 2I, D], gate rows first, down_proj [E, D, I]."""
    out, experts = {}, {}
    for name, (dtype, values) in tensors.items():
        match = _EXPERT.fullmatch(name)
        if match is None:
            out[name] = (dtype, values)
        else:
            layer, index, part = match.groups()
            experts.setdefault((layer, dtype), {}).setdefault(int(index), {})[part] = values
    for (layer, dtype), parts in experts.items():
        ordered = [parts[e] for e in range(len(parts))]
        stacked = np.stack([np.concatenate((p["gate"], p["up"])) for p in ordered])
        out[f"{layer}.gate_up_proj"] = (dtype, stacked)
        out[f"{layer}.down_proj"] = (dtype, np.stack([p["down"] for p in ordered]))
    return out


def split_experts(tensors):
    """{name: array}: experts that fuse_experts stacked, as one matrix each; other names as they are."""
    out = {}
    for name, stack in tensors.items():
        experts, _, part = name.rpartition(".")
        if part not in ("gate_up_proj", "down_proj"):
            out[name] = stack
            continue
        for e, matrix in enumerate(stack):
            if part == "down_proj":
                out[f"{experts}.{e}.down_proj.weight"] = matrix
            else:
                gate, up = np.split(matrix, 2)
                out[f"{experts}.{e}.gate_proj.weight"], out[f"{experts}.{e}.up_proj.weight"] = gate, up
    return out


def wrap(raw, tensors, architecture, model_type, text_key, prefix):
    """A multi-part model around the text model: (config, tensors)."""
    config = {"architectures": [architecture], "model_type": model_type, text_key: raw,
              "vision_config": {"model_type": "vit", "hidden_size": 8}}
    if prefix == "model.language_model.":
        renamed = {name.replace("model.", prefix, 1) if name.startswith("model.") else name: value
                   for name, value in tensors.items()}
    else:
        renamed = {prefix + name: value for name, value in tensors.items()}
    renamed["vision_tower.patch_embed.weight"] = ("F32", np.ones((8, 3)))
    return config, renamed


_WRAPPERS = {
    "kimi_k25": ("KimiK25ForConditionalGeneration", "kimi_k25", "text_config", "language_model."),
    "kimi_vl": ("KimiVLForConditionalGeneration", "kimi_vl", "text_config", "model.language_model."),
    "mistral3": ("Mistral3ForConditionalGeneration", "mistral3", "text_config", "language_model."),
    "vl2": ("DeepseekVLV2ForCausalLM", "deepseek_vl_v2", "language_config", "language."),
}
LAYOUTS = ("fused", *_WRAPPERS)


def relayout(raw, tensors, layout):
    """(config, tensors) of a plain checkpoint -> the same in another layout."""
    if layout == "fused":
        return raw, fuse_experts(tensors)
    if raw["model_type"] == "mistral4":
        tensors = fuse_experts(tensors)  # it has no other names
    return wrap(raw, tensors, *_WRAPPERS[layout])
