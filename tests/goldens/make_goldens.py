"""Writes tiny checkpoints and their golden logits, after two implementations have agreed on them.

    python make_goldens.py                                        # the committed fixtures
    python make_goldens.py --out DIR --variants --seed 7          # one fresh variant per family

The golden is the fp64 NumPy reference (reference.py). It is kept only if Hugging Face transformers
(fp32, eager attention) agrees on every logit. Needs requirements.txt.
"""

import argparse
import json
import platform
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import transformers
from transformers import AutoModelForCausalLM

import reference
from checkpoint_io import write_checkpoint
from fixtures import FIXTURES, make_tensors, make_variants
from reference_config import load
from relayout import fuse_experts, relayout

TOLERANCE = 2e-5  # on logits of order 1-10: fp32 rounding of the oracle through 3-4 layers
VARIANT_NOISE = 3.0  # unpicked seeds may exceed TOLERANCE if fp32 itself is noisier there
# Between the last chosen expert (or group of experts, or key) and the first refused one.
MIN_MARGIN = 1e-3
MIN_DRAFT_MARGIN = 2e-5  # the tokens are not chosen for the MTP layer; fp32 moves it by about 1e-6
DRAFT_ROWS = 80  # of draft_logits.npy, to keep the folder small
DRAFTS = 4  # of drafts.json, after texts of up to DRAFT_TEXT tokens
DRAFT_TEXT = 24
MIN_DRAFT_GAP = 1e-3  # between the logits of a draft and of the next best token
MAX_TOKEN_CHANGES = 500
MAX_FOLDER_BYTES = 1 << 20


def oracle_logits(folder, tokens, config):
    """Hugging Face transformers on the folder, in fp32 -> ([T, vocab] float32, softmax scale)."""
    # AutoModelForCausalLM does not list every class.
    (name,) = json.loads((folder / "config.json").read_text())["architectures"]
    model, info = getattr(transformers, name, AutoModelForCausalLM).from_pretrained(
        folder,
        dtype=torch.float32,
        attn_implementation="eager",
        experts_implementation="eager",  # the default, grouped_mm, wants rows of 16 bytes
        output_loading_info=True,
    )
    model.eval()
    mtp = tuple(f"model.layers.{config.layers + i}." for i in range(4))
    unexpected = [name for name in info["unexpected_keys"] if not name.startswith(mtp)]
    if info["missing_keys"] or info["mismatched_keys"] or unexpected:
        sys.exit(f"{folder}: the oracle did not load the checkpoint as written: {info}")
    if not config.use_rope:
        _switch_rotation_off(model)
    scale = model.model.layers[0].self_attn.scaling
    if not np.isclose(scale, reference.softmax_scale(config.rope, config.n, config.r), rtol=1e-12):
        sys.exit(f"{folder}: softmax scale of the oracle is {scale}: it lacks the squared mscale")
    with torch.no_grad():
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0]
    return logits.numpy(), scale


def _switch_rotation_off(model):
    """deepseek_v3 in transformers knows no mla_use_nope: give it cos = 1 and sin = 0."""

    def no_rotation(x, position_ids):
        ones = torch.ones(*position_ids.shape, model.config.qk_rope_head_dim, dtype=x.dtype)
        return ones, torch.zeros_like(ones)

    model.model.rotary_emb.forward = no_rotation


def choose_tokens(count, tensors, config, rng):
    """Random ids, redrawn one at a time until no decision is closer than MIN_MARGIN.

    So a different summation order cannot flip an expert or a key. The model is causal: redrawing the
    first undecided token leaves everything before it as it was. Returns (ids, logits, trace).
    """
    tokens = rng.integers(0, config.vocab, count)
    for _ in range(MAX_TOKEN_CHANGES):
        trace = reference.Trace()
        logits = reference.forward(tokens, tensors, config, trace=trace)
        margin = trace.margin()
        if margin is None:  # every layer is dense
            return tokens.tolist(), logits, trace
        undecided = np.flatnonzero(margin < MIN_MARGIN)
        if len(undecided) == 0:
            return tokens.tolist(), logits, trace
        tokens[undecided[0]] = rng.integers(0, config.vocab)
    sys.exit("no token sequence with clear decisions found: take another seed")


def zero_mask_flips(trace, config):
    """How many (layer, token) decisions change if excluded groups are filled with 0, not -inf."""
    flips = 0
    for logits, bias, routing in trace.routings:
        other = reference.route(logits, bias, config, excluded_score=0.0)
        flips += int(np.sum(np.any(np.sort(other.experts) != np.sort(routing.experts), axis=-1)))
    return flips


def fp32_noise(tokens, tensors, config, logits):
    """How far the reference itself moves when it computes in fp32."""
    single = {name: values.astype(np.float32) for name, values in tensors.items()}
    return float(np.max(np.abs(reference.forward(tokens, single, config) - logits)))


def draft_logits(tokens, tensors, config):
    """The MTP layer's logits as float32; stops if its router is undecided somewhere."""
    trace = reference.Trace()
    logits = reference.draft(tokens, tensors, config, trace)
    margins = trace.margin()
    margin = np.inf if margins is None else margins.min()
    if margin < MIN_DRAFT_MARGIN:
        sys.exit(f"margin of the MTP layer is {margin:.1e}: take another seed")
    return logits.astype(np.float32)


def greedy_drafts(tokens, logits, tensors, config):
    """[{"text": length, "next": token, "drafts": [tokens]}] where every decision is clear.

    `next` is the model's likeliest token after the first `text` tokens; `drafts` are those after it.
    """
    out = []
    for length in range(1, DRAFT_TEXT + 1):
        trace = reference.Trace()
        following = int(np.argmax(logits[length - 1]))
        text = [*tokens[:length], following]
        drafted = reference.further_drafts(text, tensors, config, DRAFTS, trace)
        decided = np.concatenate((logits[length - 1 : length], drafted))
        ranked = np.sort(decided, axis=-1)
        margins = [float((ranked[:, -1] - ranked[:, -2]).min() / MIN_DRAFT_GAP)]
        margins += [r.margin.min() / MIN_DRAFT_MARGIN for _, _, r in trace.routings]
        margins += [cut.min() / MIN_DRAFT_MARGIN for cut in trace.cuts]
        if min(margins) >= 1:
            drafts = [int(token) for token in np.argmax(drafted, axis=-1)]
            out.append({"text": length, "next": following, "drafts": drafts})
    if len(out) < DRAFT_TEXT // 2:
        sys.exit(f"only {len(out)} of {DRAFT_TEXT} drafts are decided: take another seed")
    return out


def make_fixture(folder, fixture, noise_allowance=0.0):
    """Writes one folder and returns its meta.json.

    The limit is TOLERANCE or `noise_allowance` times the reference's own fp32 noise, if larger.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(fixture.seed)
    dtype_name = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}[fixture.dtype]
    raw = {**fixture.config, "torch_dtype": dtype_name}
    (folder / "config.json").write_text(json.dumps(raw, indent=2) + "\n")
    stored = make_tensors(raw, rng, fixture.dtype)
    if raw["model_type"] == "mistral4":  # its class has no names of single experts
        stored = fuse_experts(stored)
    write_checkpoint(folder, stored, fixture.shards)

    config, tensors = load(folder)  # read back: the golden belongs to the rounded weights
    tokens, logits, trace = choose_tokens(fixture.tokens, tensors, config, rng)
    oracle, scale = oracle_logits(folder, tokens, config)
    worst = float(np.max(np.abs(oracle - logits)))
    noise = fp32_noise(tokens, tensors, config, logits)
    limit = max(TOLERANCE, noise_allowance * noise)
    if not worst < limit:
        sys.exit(f"{folder}: oracle and reference differ by {worst:.3e}, more than {limit:.1e}")
    if fixture.layout != "plain":
        for path in folder.glob("*.safetensors*"):
            path.unlink()
        raw, stored = relayout(raw, stored, fixture.layout)
        (folder / "config.json").write_text(json.dumps(raw, indent=2) + "\n")
        write_checkpoint(folder, stored, fixture.shards)
    (folder / "tokens.json").write_text(json.dumps(tokens) + "\n")
    np.save(folder / "logits.npy", logits.astype(np.float32))
    if raw.get("num_nextn_predict_layers"):
        drafts = draft_logits(tokens, tensors, config)
        np.save(folder / "draft_logits.npy", drafts[:DRAFT_ROWS])
        lines = [json.dumps(one) for one in greedy_drafts(tokens, logits, tensors, config)]
        (folder / "drafts.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    meta = {
        "seed": fixture.seed,
        "tokens": len(tokens),
        "weights": fixture.dtype,
        "layout": fixture.layout,
        "softmax_scale": scale,
        "max_abs_oracle_minus_reference": worst,
        "max_abs_fp32_reference_minus_reference": noise,
        "logits_std": float(logits.std()),
        "logits_max_abs": float(np.abs(logits).max()),
        "min_router_margin": float(
            min((routing.margin.min() for _, _, routing in trace.routings), default=np.inf)
        ),
        "min_key_margin": float(min((cut.min() for cut in trace.cuts), default=np.inf)),
        "decisions_changed_by_zero_mask": zero_mask_flips(trace, config),
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=2) + "\n")
    return meta


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="parent of the folders"
    )
    parser.add_argument(
        "--variants", action="store_true", help="random variants instead of the fixtures"
    )
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="seeds of the variants")
    parser.add_argument("--only", nargs="+", help="names, to make some of them")
    parser.add_argument("--plain", action="store_true", help="variants in the plain layout only")
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()

    fixtures = FIXTURES
    if args.variants:
        fixtures = {k: v for seed in args.seed for k, v in make_variants(seed).items()}
    for name, fixture in fixtures.items():
        if args.only and name not in args.only:
            continue
        if args.plain:
            fixture = replace(fixture, layout="plain")
        meta = make_fixture(args.out / name, fixture, VARIANT_NOISE if args.variants else 0.0)
        size = sum(path.stat().st_size for path in (args.out / name).iterdir())
        if not args.variants and size >= MAX_FOLDER_BYTES:
            sys.exit(f"{name}: {size} bytes, a fixture must stay below {MAX_FOLDER_BYTES}")
        print(
            f"{name:18} T={meta['tokens']} {meta['weights']:4} scale={meta['softmax_scale']:.7f} "
            f"|oracle-reference|={meta['max_abs_oracle_minus_reference']:.2e} "
            f"logits std={meta['logits_std']:.2f} max={meta['logits_max_abs']:.1f} "
            f"margin={meta['min_router_margin']:.1e}, {meta['min_key_margin']:.1e} "
            f"zero-mask={meta['decisions_changed_by_zero_mask']} {size // 1024} KiB"
        )


if __name__ == "__main__":
    main()
