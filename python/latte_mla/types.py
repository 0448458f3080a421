"""What goes into requests and what comes out of them."""
from __future__ import annotations

import dataclasses
import json
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union


@dataclasses.dataclass(frozen=True)
class SamplingParams:
    """How tokens are sampled and when an answer ends. None means the model's own default
    (generation_config.json), or else the engine's: temperature 0, which takes the likeliest token.
    """

    temperature: Optional[float] = None
    top_p: Optional[float] = None
    top_k: Optional[int] = None  # 0: all tokens
    min_p: Optional[float] = None
    repetition_penalty: Optional[float] = None
    presence_penalty: Optional[float] = None
    frequency_penalty: Optional[float] = None
    seed: Optional[int] = None  # None: another one for every call
    max_tokens: Optional[int] = None
    min_tokens: Optional[int] = None
    stop: Union[str, Sequence[str]] = ()  # texts that end the answer and are left out
    stop_token_ids: Sequence[int] = ()
    ignore_eos: bool = False
    n: int = 1  # answers per prompt
    logprobs: Optional[int] = None  # alternatives with every token, 0 to 20
    prompt_logprobs: Optional[int] = None  # the same for tokens of the prompt
    logit_bias: Optional[Dict[int, float]] = None
    skip_special_tokens: bool = True
    echo: bool = False  # the prompt's text begins the answer's
    parse_special: bool = False  # special-token text in the prompt means the token
    json_schema: Union[str, Dict[str, Any], None] = None  # the answer matches it
    grammar: Optional[str] = None  # or this, in the notation grammar_syntax
    grammar_syntax: str = "ebnf"  # "regex", "ebnf", "lark" or "structural-tag"
    cache_salt: str = ""  # prefixes are shared only among requests with equal salt
    priority: int = 0  # lower is served first

    def constraint(self) -> Optional[Tuple[str, str]]:
        """(syntax, text) of what the answer must match, or None."""
        if self.json_schema is not None:
            text = self.json_schema if isinstance(self.json_schema, str) else json.dumps(self.json_schema)
            return "json-schema", text
        return (self.grammar_syntax, self.grammar) if self.grammar else None

    def chat_fields(self) -> Dict[str, Any]:
        """The same as fields of a /v1/chat/completions body."""
        out: Dict[str, Any] = {}
        for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty",
                     "frequency_penalty", "seed", "max_tokens", "min_tokens", "prompt_logprobs"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        for name, unset in (("stop", ()), ("stop_token_ids", ()), ("ignore_eos", False), ("n", 1),
                            ("skip_special_tokens", True), ("cache_salt", ""), ("priority", 0)):
            value = getattr(self, name)
            if value != unset:
                out[name] = list(value) if isinstance(value, (list, tuple)) else value
        if self.logprobs is not None:
            out.update(logprobs=True, top_logprobs=self.logprobs)
        if self.logit_bias:
            out["logit_bias"] = {str(token): bias for token, bias in self.logit_bias.items()}
        constraint = self.constraint()
        if constraint:
            syntax, text = constraint
            key = {"json-schema": "json", "structural-tag": "structural_tag"}.get(syntax, syntax)
            key = "grammar" if key in ("ebnf", "lark") else key
            out["structured_outputs"] = {key: json.loads(text) if key == "json" else text}
        return out


@dataclasses.dataclass(frozen=True)
class TokenLogprob:
    """The natural logarithm of a token's probability, and its likeliest alternatives: id to logarithm."""

    token_id: int
    logprob: float
    top: Dict[int, float]


@dataclasses.dataclass(frozen=True)
class Usage:
    """What an answer took. Seconds: waiting in the queue, and from there to the first token."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    drafted_tokens: int
    accepted_tokens: int
    queue_seconds: float
    prefill_seconds: float


@dataclasses.dataclass(frozen=True)
class Choice:
    """One answer."""

    text: str
    token_ids: List[int]
    finish_reason: str  # "stop", "length" or "cancelled"
    stop_string: Optional[str]  # that ended it
    logprobs: Optional[List[TokenLogprob]]
    usage: Usage


@dataclasses.dataclass(frozen=True)
class Output:
    """The answers to one prompt. text, token_ids … are of the first one."""

    prompt: Union[str, Sequence[int]]
    choices: List[Choice]
    prompt_logprobs: Optional[List[TokenLogprob]]  # of prompt tokens 1, 2, …

    @property
    def text(self) -> str:
        return self.choices[0].text

    @property
    def token_ids(self) -> List[int]:
        return self.choices[0].token_ids

    @property
    def finish_reason(self) -> str:
        return self.choices[0].finish_reason

    @property
    def logprobs(self) -> Optional[List[TokenLogprob]]:
        return self.choices[0].logprobs

    @property
    def usage(self) -> Usage:
        return self.choices[0].usage


@dataclasses.dataclass(frozen=True)
class Delta:
    """What became certain of an answer with one step. A prompt's delta has token_id, logprob and, at the
    end, usage; a chat's has reasoning, tool_calls and the chunk of the OpenAI API."""

    text: str = ""
    index: int = 0  # which of n answers
    token_id: Optional[int] = None
    logprob: Optional[TokenLogprob] = None
    finish_reason: Optional[str] = None  # the answer's last delta
    usage: Union[Usage, Dict[str, Any], None] = None
    reasoning: str = ""
    tool_calls: Optional[List[Dict[str, Any]]] = None
    chunk: Optional[Dict[str, Any]] = None


@dataclasses.dataclass(frozen=True)
class Score:
    """How likely a given text is. logprobs[i] is of token_ids[i] after those before it; the first is None."""

    token_ids: List[int]
    logprobs: List[Optional[float]]
    total: float
    perplexity: float
