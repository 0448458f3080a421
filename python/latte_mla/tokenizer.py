"""Text to token ids and back, and prompts of chats, without weights."""
from __future__ import annotations

import ctypes
import json
from ctypes import c_int32, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Union

from ._library import Text, call, fill_bytes, fill_ids, library

Messages = Sequence[Dict[str, Any]]


class Tokenizer:
    """The tokenizer and the chat format of a model. Immutable, thread-safe.

    `Tokenizer("tiny")` reads the small files of a model's folder only; `LLM.tokenizer` is the one
    of a loaded model.
    """

    def __init__(self, model: str = "tiny") -> None:
        self._owner: Any = None  # keeps a borrowed model alive
        self._model = c_void_p()
        call("latte_model_open", str(model).encode(), ctypes.byref(self._model))

    @classmethod
    def _of_service(cls, service: int, owner: Any) -> "Tokenizer":
        out = cls.__new__(cls)
        out._owner = owner
        out._model = c_void_p(library().latte_service_model(service))
        return out

    def __del__(self) -> None:
        model = getattr(self, "_model", None)
        if model and self._owner is None:
            library().latte_model_close(model)

    def _handle(self) -> c_void_p:
        if self._owner is not None:
            self._owner._check()
        return self._model

    def encode(self, text: str, *, add_special_tokens: bool = True, parse_special: bool = False) -> List[int]:
        """The ids of `text`. add_special_tokens: begin with the start token if the model wants one.
        parse_special: text that spells a special token becomes that token; leave it off for text of
        users."""
        data = text.encode("utf-8", "surrogatepass")
        return fill_ids("latte_model_encode", self._handle(), Text.of(data), int(add_special_tokens),
                        int(parse_special))

    def decode(self, tokens: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        """The text of `tokens`; bytes that are no UTF-8 become U+FFFD. Raises LatteError for an id
        outside of the vocabulary."""
        ids = (c_int32 * len(tokens))(*tokens)
        return fill_bytes("latte_model_decode", self._handle(), ids, len(tokens), int(skip_special_tokens)).decode(
            "utf-8", "replace")

    def apply_chat_template(self, messages: Messages, *, tools: Optional[Sequence[Dict[str, Any]]] = None,
                            tokenize: bool = True, **fields: Any) -> Union[List[int], str]:
        """The prompt of a conversation: ids, or its text with tokenize=False.

        `fields` are further fields of a /v1/chat/completions body that shape the prompt:
        reasoning_effort, chat_template_kwargs. Raises LatteError if the model has no chat format.
        """
        body = {"messages": list(messages), **fields}
        if tools is not None:
            body["tools"] = list(tools)
        data = json.dumps(body).encode()
        tokens = fill_ids("latte_model_chat_prompt", self._handle(), Text.of(data))
        return tokens if tokenize else self.decode(tokens)

    @property
    def info(self) -> Dict[str, Any]:
        """Sizes, token ids, chat format and generation defaults of the model."""
        return json.loads(fill_bytes("latte_model_info", self._handle()))

    @property
    def special_tokens(self) -> Dict[str, int]:
        """Text and id of each special token."""
        return self.info["special_tokens"]

    @property
    def bos_token_id(self) -> Optional[int]:
        return self.info["bos_token_id"]

    @property
    def eos_token_ids(self) -> List[int]:
        return self.info["eos_token_ids"]

    @property
    def vocab_size(self) -> int:
        """The number of columns that logits have."""
        return self.info["vocab_size"]
