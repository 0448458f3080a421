"""Latte in Python: models with Multi-head Latent Attention on CPUs.

    import latte_mla

    with latte_mla.LLM("tiny") as llm:
        print(llm.generate("Once upon a time").text)

docs/python.md explains it. Needs nothing but liblatte; logits and ops need NumPy.
"""
from __future__ import annotations

from ._library import version
from ._queue import AsyncStream, Stream
from .errors import LatteError
from .llm import LLM
from .program import Server, pull
from .tokenizer import Tokenizer
from .types import Choice, Delta, Output, SamplingParams, Score, TokenLogprob, Usage

__all__ = ["AsyncStream", "Choice", "Delta", "LLM", "LatteError", "Output", "SamplingParams", "Score", "Server", "Stream",
           "TokenLogprob", "Tokenizer", "Usage", "pull", "version"]
