"""SamplingParams to a latte_request."""
from __future__ import annotations

import ctypes
import os
from ctypes import c_int32, c_void_p
from typing import Any, List, Sequence, Union

from . import _library as c
from .errors import LatteError
from .types import SamplingParams

Prompt = Union[str, Sequence[int]]

_NUMBERS = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
            "max_tokens", "min_tokens", "logprobs", "prompt_logprobs")
_SET = ("n", "priority")


def set_number(struct: ctypes.Structure, name: str, value: float) -> None:
    """Raises LatteError for a number that the member cannot hold; ctypes would cut it."""
    setattr(struct, name, value)
    if isinstance(value, int) and getattr(struct, name) != value:
        raise LatteError("invalid_argument", f"{name}: expected a smaller number, found {value}")


class RequestOf:
    """The struct, with all that it points to."""

    def __init__(self, model: c_void_p, prompt: Prompt, params: SamplingParams) -> None:
        self.struct = c.Request()
        self._kept: List[Any] = []
        c.call("latte_model_request_init", model, ctypes.byref(self.struct), ctypes.sizeof(c.Request))
        self._prompt(prompt)
        for name in _NUMBERS:
            if getattr(params, name) is not None:
                self._number(name, getattr(params, name))
        for name in _SET:
            self._number(name, getattr(params, name))
        for name in ("ignore_eos", "echo", "parse_special"):
            setattr(self.struct, name, int(getattr(params, name)))
        self.struct.keep_special = int(not params.skip_special_tokens)
        self.struct.seed = int.from_bytes(os.urandom(8), "little") if params.seed is None else params.seed % 2**64
        self.struct.cache_salt = self._text(params.cache_salt)
        self._stops(params)
        self._constraint(params)

    def _number(self, name: str, value: float) -> None:
        set_number(self.struct, name, value)

    def _text(self, text: str) -> c.Text:
        data = text.encode("utf-8", "surrogatepass")
        self._kept.append(data)
        return c.Text.of(data)

    def _array(self, kind: Any, values: Sequence[Any]) -> Any:
        array = (kind * len(values))(*values)
        self._kept.append(array)
        return array

    def _prompt(self, prompt: Prompt) -> None:
        if isinstance(prompt, str):
            self.struct.prompt = self._text(prompt)
            return
        self.struct.prompt = c.Text(None, 0)
        self.struct.tokens = self._array(c_int32, [int(token) for token in prompt])
        self.struct.token_count = len(prompt)

    def _stops(self, params: SamplingParams) -> None:
        stops = [params.stop] if isinstance(params.stop, str) else list(params.stop)
        if stops:
            self.struct.stop_strings = self._array(c.Text, [self._text(stop) for stop in stops])
            self.struct.stop_string_count = len(stops)
        if params.stop_token_ids:
            self.struct.stop_tokens = self._array(c_int32, list(params.stop_token_ids))
            self.struct.stop_token_count = len(params.stop_token_ids)
        if params.logit_bias:
            pairs = [c.LogitBias(int(token), bias) for token, bias in params.logit_bias.items()]
            self.struct.logit_bias = self._array(c.LogitBias, pairs)
            self.struct.logit_bias_count = len(pairs)

    def _constraint(self, params: SamplingParams) -> None:
        found = params.constraint()
        if found:
            syntax = found[0].encode()
            self._kept.append(syntax)
            self.struct.grammar_syntax = syntax
            self.struct.grammar = self._text(found[1])
