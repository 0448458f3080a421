#!/usr/bin/env python3
"""Memory and arithmetic of MLA for published models, as the Markdown tables of docs/math/mla.md.

    python3 tools/mla_table.py                          # prints the tables
    python3 tools/mla_table.py --check docs/math/mla.md # fails unless the document contains them

Everything is computed from the dimensions below, which come from each model's config.json.
A multiply-add counts as 2 FLOP.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

BF16_BYTES = 2


@dataclass(frozen=True)
class Model:
    """Symbols as in docs/math/mla.md; cq is None if queries have no low-rank step."""

    name: str
    layers: int
    h: int
    cq: int
    c: int
    n: int
    r: int
    v: int

    def cache_elements(self):
        return (self.c + self.r) * self.layers

    def expanded_elements(self):
        return self.h * (self.n + self.r + self.v) * self.layers

    def up_projection_flop(self):
        """Cost of W_UK and W_UV for one token: per cached token if expanded, per query if absorbed."""
        return 2 * self.c * self.h * (self.n + self.v)

    def pair_flop_expanded(self):
        return 2 * self.h * (self.n + self.r + self.v)

    def pair_flop_absorbed(self):
        return 2 * self.h * (2 * self.c + self.r)

    def flop_per_cache_byte(self):
        return self.pair_flop_absorbed() / ((self.c + self.r) * BF16_BYTES)

    def break_even(self, s):
        """New tokens T from which expanding S keys costs fewer FLOP; S = None: the limit."""
        up, saved = self.c * (self.n + self.v), 2 * self.c - self.n - self.v
        return up / saved if s is None else up * s / (saved * s + up)


MODELS = (
    Model("DeepSeek-V2-Lite", 27, 16, None, 512, 128, 64, 128),
    Model("DeepSeek-V2", 60, 128, 1536, 512, 128, 64, 128),
    Model("DeepSeek-V3, R1", 61, 128, 1536, 512, 128, 64, 128),
    Model("Kimi-K2", 61, 64, 1536, 512, 128, 64, 128),
    Model("Moonlight-16B-A3B", 27, 16, None, 512, 128, 64, 128),
    Model("GLM-4.7-Flash", 47, 20, 768, 512, 192, 64, 256),
)
BREAK_EVEN_LENGTHS = (512, 4096, 32768, None)

# DeepSeek 67B: grouped-query attention with 8 KV heads of 128 dims in 95 layers.
GQA_67B_ELEMENTS = 2 * 8 * 128 * 95
V2_DEPLOYED_BITS = 6  # per cached element, on average (V2 section 3.2.3)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def memory_table():
    rows = [
        (
            m.name,
            m.layers,
            m.h,
            m.cq or "-",
            m.c,
            f"{m.n}/{m.r}/{m.v}",
            f"{m.cache_elements():,}",
            f"{m.cache_elements() * BF16_BYTES:,}",
            f"{m.expanded_elements():,}",
            f"{m.expanded_elements() / m.cache_elements():.1f}",
        )
        for m in MODELS
    ]
    latent = ("(C+R)·L", "bytes, bf16")
    expanded = ("expanded: H(N+R+V)·L", "expanded / latent")
    return table(("model", "L", "H", "Cq", "C", "N/R/V", *latent, *expanded), rows)


def flop_table():
    rows = [
        (
            m.name,
            f"{m.up_projection_flop() / 1e6:.2f}",
            f"{m.pair_flop_expanded():,}",
            f"{m.pair_flop_absorbed():,}",
            f"{m.pair_flop_absorbed() / m.pair_flop_expanded():.2f}",
            f"{m.flop_per_cache_byte():.1f}",
        )
        for m in MODELS
    ]
    header = (
        "model",
        "W_UK and W_UV per token, MFLOP",
        "per pair, expanded",
        "per pair, absorbed",
        "ratio",
        "absorbed FLOP per cache byte",
    )
    return table(header, rows)


def break_even_table():
    """Depends on C, N and V only, so most models share a row."""
    rows = {}
    for m in MODELS:
        lengths = tuple(f"{m.break_even(s):.0f}" for s in BREAK_EVEN_LENGTHS)
        rows.setdefault(((m.c, m.n, m.v), lengths), []).append(m.name)
    header = [f"S = {s:,}" if s else "S → ∞" for s in BREAK_EVEN_LENGTHS]
    body = [
        (f"C={c} N={n} V={v}: " + "; ".join(names), *lengths)
        for ((c, n, v), lengths), names in rows.items()
    ]
    return table(("dimensions", *header), body)


def comparison_table():
    v2 = MODELS[1].cache_elements()
    base = GQA_67B_ELEMENTS * BF16_BYTES
    rows = []
    for name, elements, bits in (
        ("DeepSeek 67B, GQA", GQA_67B_ELEMENTS, 16),
        ("DeepSeek-V2, MLA", v2, 16),
        ("DeepSeek-V2, MLA, as deployed", v2, V2_DEPLOYED_BITS),
    ):
        size = elements * bits // 8
        rows.append((name, f"{elements:,}", bits, f"{size:,}", f"{100 * (1 - size / base):.1f} %"))
    return table(("cache per token", "elements", "bits each", "bytes", "less than 67B"), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", type=Path, metavar="FILE", help="FILE must contain every table")
    args = parser.parse_args()
    tables = (memory_table(), flop_table(), break_even_table(), comparison_table())
    if args.check is None:
        print("\n\n".join(tables))
        return
    text = args.check.read_text(encoding="utf-8")
    stale = [t for t in tables if t not in text]
    for t in stale:
        print(f"{args.check} lacks this table:\n\n{t}\n", file=sys.stderr)
    sys.exit(1 if stale else 0)


if __name__ == "__main__":
    main()
