"""Latte's kernels over NumPy arrays, to hold them against your own formulas.

    import numpy as np
    from latte_mla import ops

    y = ops.gemm(x, w)                              # x @ w.T
    print(np.abs(y - np.einsum("mk,nk->mn", x, w)).max())

Symbols: T new tokens · B sequences · S keys · H heads · C, R widths of a cached row's latent and rope
part · N, V widths of a head's keys and values · P tokens per page.

Inputs become C-contiguous float32, with a copy where they are not; outputs are new float32 arrays. The
kernels are the engine's on this machine; LATTE_ISA and LATTE_KERNEL choose others (`latte
inspect --kernels`). Wrong shapes raise ValueError, other wrong values LatteError with the code
"invalid_argument". All need NumPy.
"""
from __future__ import annotations

import ctypes
import os
import threading
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from ._library import Error, call, library

__all__ = ["gemm", "mla_decode", "mla_prefill"]

Array = np.ndarray


class _Decode(ctypes.Structure):
    _fields_ = [("size", c_size_t),
                *((name, c_void_p) for name in (
                    "q_latent", "q_rope", "pages", "page_table", "lengths", "new_tokens", "o_latent", "lse")),
                *((name, c_int64) for name in (
                    "t", "h", "c", "r", "b", "page_count", "page_tokens", "page_table_width")),
                ("dtype", c_char_p), ("scale", c_double)]


class _Prefill(ctypes.Structure):
    _fields_ = [("size", c_size_t),
                *((name, c_void_p) for name in ("q_nope", "q_rope", "k_nope", "k_rope", "v", "o", "lse")),
                *((name, c_int64) for name in ("t", "s", "h", "n", "r", "v_width")),
                ("dtype", c_char_p), ("scale", c_double)]


_lock = threading.Lock()
_handles: Dict[Tuple[int, int], c_void_p] = {}  # by process and threads: a fork has no threads


def _ops(threads: Optional[int]) -> c_void_p:
    """The kernels with so many threads, made at the first call."""
    key = (os.getpid(), threads or 0)
    with _lock:
        if key not in _handles:
            lib = library()
            lib.latte_ops_create.argtypes = [c_int32, POINTER(c_void_p), POINTER(Error)]
            lib.latte_op_gemm.argtypes = [c_void_p, *[c_void_p] * 3, *[c_int64] * 3, c_char_p, POINTER(Error)]
            lib.latte_op_mla_decode.argtypes = [c_void_p, POINTER(_Decode), POINTER(Error)]
            lib.latte_op_mla_prefill.argtypes = [c_void_p, POINTER(_Prefill), POINTER(Error)]
            handle = c_void_p()
            call("latte_ops_create", key[1], ctypes.byref(handle))
            _handles[key] = handle
        return _handles[key]


def _array(name: str, value: Any, sizes: Sequence[Tuple[str, Optional[int]]], kind: Any = np.float32) -> Array:
    """`value` as a contiguous array with one dimension per pair of sizes; None: any size."""
    out = np.ascontiguousarray(value, dtype=kind)
    expected = "[" + ", ".join(letter if size is None else f"{letter}={size}" for letter, size in sizes) + "]"
    fits = out.ndim == len(sizes) and all(size in (None, found) for (_, size), found in zip(sizes, out.shape))
    if not fits:
        raise ValueError(f"{name}: expected an array {expected}, found {list(np.shape(value))}")
    return out


def _at(array: Array) -> c_void_p:
    return array.ctypes.data_as(c_void_p)


def gemm(x: Any, w: Any, *, dtype: str = "f32", threads: Optional[int] = None) -> Array:
    """y = x·wᵀ, as `np.einsum("mk,nk->mn", x, w)`.

    x [M, K] activations; w [N, K] weights, rounded to `dtype` ("f32", "bf16" or "f16") before the product;
    returns y [M, N]. Sums are f32, so |y − exact| ≤ γ(K)·Σ_k |x·w| with γ(K) = K·2⁻²⁴/(1 − K·2⁻²⁴), where
    `exact` uses the rounded w. threads: None: one per processor.
    """
    x = _array("x", x, [("M", None), ("K", None)])
    w = _array("w", w, [("N", None), ("K", x.shape[1])])
    y = np.empty((x.shape[0], w.shape[0]), np.float32)
    call("latte_op_gemm", _ops(threads), _at(x), _at(w), _at(y), x.shape[0], w.shape[0], x.shape[1], dtype.encode())
    return y


def mla_decode(q_latent: Any, q_rope: Any, pages: Any, page_table: Any, lengths: Any, scale: float, *,
               new_tokens: Any = None, dtype: str = "f32", threads: Optional[int] = None) -> Tuple[Array, Array]:
    """Absorbed attention of the new tokens of B sequences to a paged cache of latents.

        s[t,h,j]        = scale · ( q_latent[t,h,:]·c[j,:] + q_rope[t,h,:]·r[j,:] ),  j up to the token itself
        o_latent[t,h,:] = Σ_j softmax_j(s[t,h,:]) · c[j,:]
        lse[t,h]        = log Σ_j exp(s[t,h,j])                       (natural logarithm)

    q_latent [T, H, C] queries times W_UK; q_rope [T, H, R], rotated; pages [pages, P, C+R], rows [c | r],
    rounded to `dtype` ("f32", "bf16" or "f16"), P one of 16, 32, 64, 128 or 256; page_table [B, width] int32: row j
    of sequence b is row j mod P of page page_table[b, j // P]; lengths [B]: tokens of each sequence, its new ones
    included; new_tokens [B]: of them, rows of the queries in order, T in all (None: one each); scale above 0, usually
    (N+R)^−½. Returns o_latent [T, H, C] and lse [T, H].

    Source: DeepSeek-V2 (arXiv 2405.04434) §2.1. Kernels with 16-bit arithmetic may round queries and probabilities
    to the cache's type too.
    """
    q_latent = _array("q_latent", q_latent, [("T", None), ("H", None), ("C", None)])
    t, h, c = q_latent.shape
    q_rope = _array("q_rope", q_rope, [("T", t), ("H", h), ("R", None)])
    r = q_rope.shape[2]
    pages = _array("pages", pages, [("pages", None), ("P", None), ("C+R", c + r)])
    lengths = _array("lengths", lengths, [("B", None)], np.int64)
    b = lengths.shape[0]
    page_table = _array("page_table", page_table, [("B", b), ("width", None)], np.int32)
    counts = np.ones(b, np.int64) if new_tokens is None else _array("new_tokens", new_tokens, [("B", b)], np.int64)
    o_latent, lse = np.empty((t, h, c), np.float32), np.empty((t, h), np.float32)
    arrays = _Decode(ctypes.sizeof(_Decode), _at(q_latent), _at(q_rope), _at(pages), _at(page_table), _at(lengths),
                     _at(counts), _at(o_latent), _at(lse), t, h, c, r, b, pages.shape[0], pages.shape[1],
                     page_table.shape[1], dtype.encode(), scale)
    call("latte_op_mla_decode", _ops(threads), ctypes.byref(arrays))
    return o_latent, lse


def mla_prefill(q_nope: Any, q_rope: Any, k_nope: Any, k_rope: Any, v: Any, scale: float, *, dtype: str = "f32",
                threads: Optional[int] = None) -> Tuple[Array, Array]:
    """Expanded causal attention of T queries to S ≥ T keys; query t is at position S − T + t.

        s[t,h,j] = scale · ( q_nope[t,h,:]·k_nope[j,h,:] + q_rope[t,h,:]·k_rope[j,:] ),  j ≤ S − T + t
        o[t,h,:] = Σ_j softmax_j(s[t,h,:]) · v[j,h,:]
        lse[t,h] = log Σ_j exp(s[t,h,j])                              (natural logarithm)

    q_nope [T, H, N]; q_rope [T, H, R], rotated; k_nope [S, H, N]; k_rope [S, R], the same for all heads;
    v [S, H, V]; scale above 0. dtype "f32", "bf16" or "f16": of the arithmetic; with 16 bits a kernel may round queries,
    keys, values and probabilities. Returns o [T, H, V] and lse [T, H].
    """
    q_nope = _array("q_nope", q_nope, [("T", None), ("H", None), ("N", None)])
    t, h, n = q_nope.shape
    q_rope = _array("q_rope", q_rope, [("T", t), ("H", h), ("R", None)])
    k_nope = _array("k_nope", k_nope, [("S", None), ("H", h), ("N", n)])
    s, r = k_nope.shape[0], q_rope.shape[2]
    k_rope = _array("k_rope", k_rope, [("S", s), ("R", r)])
    v = _array("v", v, [("S", s), ("H", h), ("V", None)])
    o, lse = np.empty((t, h, v.shape[2]), np.float32), np.empty((t, h), np.float32)
    arrays = _Prefill(ctypes.sizeof(_Prefill), _at(q_nope), _at(q_rope), _at(k_nope), _at(k_rope), _at(v), _at(o), _at(lse),
                      t, s, h, n, r, v.shape[2], dtype.encode(), scale)
    call("latte_op_mla_prefill", _ops(threads), ctypes.byref(arrays))
    return o, lse
