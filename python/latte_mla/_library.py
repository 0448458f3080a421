"""liblatte by ctypes: where it is, its structs, and calls that raise LatteError."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
import shutil
import threading
from ctypes import (CFUNCTYPE, POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint64,
                    c_void_p)
from typing import Any, Dict, Iterable, List, Optional

from .errors import CODES, LatteError

ABI_VERSION = 1  # of latte_abi_version(), which this package needs at least
UP_TO_NUL = ctypes.c_size_t(-1).value
FINISH = ("none", "stop", "length", "cancelled", "error")

_HERE = pathlib.Path(__file__).resolve().parent


class Text(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("bytes", c_size_t)]

    @classmethod
    def of(cls, data: bytes) -> "Text":
        """Points into `data`, which must live as long as the struct."""
        return cls(ctypes.cast(c_char_p(data), c_void_p), len(data))

    def read(self) -> bytes:
        return ctypes.string_at(self.data, self.bytes) if self.bytes else b""

    def text(self) -> str:
        return self.read().decode("utf-8", "replace")


class Error(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("code", c_int32), ("message", ctypes.c_char * 1020)]


class LogitBias(ctypes.Structure):
    _fields_ = [("token", c_int32), ("bias", c_float)]


class EngineOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t),
                *((name, c_char_p) for name in ("model", "dtype", "cache_dtype", "attention", "deterministic", "cache_dir")),
                *((name, c_int64) for name in (
                    "cache_dir_bytes", "page_tokens", "cache_bytes", "max_tokens", "max_batch_tokens", "max_sequences",
                    "max_queued_requests", "max_queued_tokens", "aging_steps", "prefill_workspace_tokens")),
                *((name, c_int32) for name in ("threads", "int8_activations", "check_weights", "prefix_cache")),
                ("draft_tokens", c_char_p), ("drafter", c_char_p), ("tp", c_int64), ("ep", c_int64), ("dp", c_int64),
                ("dp_policy", c_char_p), ("expert_exchange", c_char_p), ("device", c_char_p)]


class Request(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("prompt", Text), ("tokens", POINTER(c_int32)), ("token_count", c_size_t),
                ("logit_bias", POINTER(LogitBias)), ("logit_bias_count", c_size_t),
                *((name, c_double) for name in ("temperature", "top_p", "min_p", "repetition_penalty",
                                                "presence_penalty", "frequency_penalty")),
                ("top_k", c_int64), ("seed", c_uint64), ("max_tokens", c_int64), ("min_tokens", c_int64),
                ("stop_tokens", POINTER(c_int32)), ("stop_token_count", c_size_t),
                ("stop_strings", POINTER(Text)), ("stop_string_count", c_size_t), ("cache_salt", Text),
                ("priority", c_int64),
                *((name, c_int32) for name in ("ignore_eos", "parse_special", "n", "logprobs", "prompt_logprobs", "echo")),
                ("keep_special", c_int64), ("user_data", c_uint64), ("grammar", Text), ("grammar_syntax", c_char_p)]


class Logprob(ctypes.Structure):
    _fields_ = [("token", c_int32), ("logprob", c_float)]


class TokenLogprobs(ctypes.Structure):
    _fields_ = [("chosen", Logprob), ("top", POINTER(Logprob)), ("top_count", c_size_t)]


class Event(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("request", c_uint64), ("choice", c_int32), ("token", c_int32), ("text", Text),
                ("logprobs", POINTER(TokenLogprobs)), ("prompt_logprobs", POINTER(TokenLogprobs)),
                ("prompt_logprob_count", c_size_t), ("prompt_tokens", c_int64), ("cached_tokens", c_int64),
                ("generated_tokens", c_int64), ("finish", c_int32), ("error_code", c_int32),
                ("error_message", c_char_p), ("user_data", c_uint64), ("queue_seconds", c_double),
                ("prefill_seconds", c_double), ("drafted_tokens", c_int64), ("accepted_tokens", c_int64),
                ("stop_string", Text)]


class Answer(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("choice", c_int32), ("finish", c_int32), ("tokens", POINTER(c_int32)),
                ("token_count", c_size_t), ("text", Text), ("logprobs", POINTER(TokenLogprobs)),
                ("prompt_logprobs", POINTER(TokenLogprobs)), ("prompt_logprob_count", c_size_t),
                ("end", POINTER(Event))]


class Result(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("request", c_uint64), ("user_data", c_uint64), ("event", POINTER(Event)),
                ("answer", POINTER(Answer)), ("bytes", Text), ("last", c_int32), ("error_code", c_int32),
                ("error_message", c_char_p)]


class Stats(ctypes.Structure):
    _fields_ = [("size", c_size_t),
                *((name, c_int64) for name in (
                    "waiting", "running", "pages_total", "pages_used", "pages_cached", "page_bytes", "page_tokens", "steps",
                    "requests_finished", "requests_failed", "requests_cancelled", "preemptions", "prompt_tokens",
                    "cached_tokens", "disk_tokens", "computed_tokens", "generated_tokens")),
                ("step_seconds", c_double), ("forward_seconds", c_double), ("drafted_tokens", c_int64),
                ("accepted_tokens", c_int64), ("masks", c_int64), ("mask_seconds", c_double),
                ("mask_wait_seconds", c_double)]


Log = CFUNCTYPE(None, c_void_p, c_char_p)
Progress = CFUNCTYPE(None, c_void_p, c_char_p, c_int64, c_int64)


class ServiceOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("engine", POINTER(EngineOptions)), ("log", Log), ("progress", Progress),
                ("context", c_void_p)]


def members(struct: Any) -> Dict[str, Any]:
    """Name and type of each member of a struct, but its size."""
    return {member[0]: member[1] for member in struct._fields_[1:]}


_I32, _SIZE, _ID = POINTER(c_int32), POINTER(c_size_t), POINTER(c_uint64)
_BUFFER = c_void_p  # of numbers
# Arguments of each function that returns a code; the last one, a latte_error, is added.
_CALLS: Dict[str, List[Any]] = {
    "latte_model_open": [c_char_p, POINTER(c_void_p)],
    "latte_model_encode": [c_void_p, Text, c_int32, c_int32, _BUFFER, c_size_t, _SIZE],
    "latte_model_decode": [c_void_p, _BUFFER, c_size_t, c_int32, _BUFFER, c_size_t, _SIZE],
    "latte_model_chat_prompt": [c_void_p, Text, _BUFFER, c_size_t, _SIZE],
    "latte_model_info": [c_void_p, _BUFFER, c_size_t, _SIZE],
    "latte_model_request_init": [c_void_p, POINTER(Request), c_size_t],
    "latte_service_start": [POINTER(ServiceOptions), POINTER(c_void_p)],
    "latte_service_wait": [c_void_p, c_int64, _I32],
    "latte_service_submit": [c_void_p, c_void_p, POINTER(Request), c_int32, _ID],
    "latte_service_answer": [c_void_p, c_void_p, Text, Text, c_uint64, _ID],
    "latte_service_logits": [c_void_p, c_void_p, _BUFFER, c_size_t, c_size_t, _BUFFER, c_size_t, c_uint64, _ID],
    "latte_service_cancel": [c_void_p, c_uint64],
    "latte_service_stats": [c_void_p, POINTER(Stats)],
    "latte_service_settled_options": [c_void_p, POINTER(EngineOptions)],
    "latte_queue_create": [POINTER(c_void_p)],
    "latte_queue_take": [c_void_p, c_int64, POINTER(POINTER(POINTER(Result))), _SIZE],
    "latte_queue_descriptor": [c_void_p, _I32],
}
_ENDS = ("latte_model_close", "latte_service_stop", "latte_queue_destroy")


def clone_of_this_package() -> Optional[pathlib.Path]:
    """The clone of Latte that this package lies in, or None."""
    root = _HERE.parents[1]
    return root if (root / "include/latte/latte.h").is_file() else None


def _candidates() -> Iterable[str]:
    if given := os.environ.get("LATTE_LIBRARY"):
        yield given
        return
    yield from sorted(str(path) for path in (_HERE / "lib").glob("liblatte.so*"))[:1]
    clone = clone_of_this_package()
    if clone and (clone / "build/release/liblatte.so").is_file():
        yield str(clone / "build/release/liblatte.so")
    yield ctypes.util.find_library("latte") or "liblatte.so"


def _load() -> ctypes.CDLL:
    failures = []
    for name in _candidates():
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            failures.append(str(error))
    raise LatteError("not_found", "liblatte.so was not found: set LATTE_LIBRARY to its path, or run `make build` in the "
                                  "clone of this package; tried: " + "; ".join(failures))


def _declare(lib: ctypes.CDLL) -> None:
    lib.latte_version.restype = c_char_p
    for name, arguments in _CALLS.items():
        function = getattr(lib, name)
        function.argtypes, function.restype = [*arguments, POINTER(Error)], c_int32
    for name in _ENDS:
        function = getattr(lib, name)
        function.argtypes, function.restype = [c_void_p], None
    lib.latte_service_model.argtypes, lib.latte_service_model.restype = [c_void_p], c_void_p
    lib.latte_engine_options_init.argtypes = [POINTER(EngineOptions), c_size_t]
    lib.latte_request_init.argtypes = [POINTER(Request), c_size_t]


_lock = threading.Lock()
_loaded: Optional[ctypes.CDLL] = None


def library() -> ctypes.CDLL:
    """liblatte, loaded at the first call. Raises LatteError if there is none, or if it is too old."""
    global _loaded
    with _lock:
        if _loaded is None:
            lib = _load()
            version = getattr(lib, "latte_abi_version", lambda: 0)()
            if version < ABI_VERSION:
                raise LatteError("unsupported", f"liblatte: expected version {ABI_VERSION} of its C interface or a later "
                                                f"one, found {version}: this package needs a newer library")
            _declare(lib)
            _loaded = lib
        return _loaded


_errors = threading.local()


def call(name: str, *arguments) -> None:
    """Calls a function of the library. Raises LatteError."""
    error = getattr(_errors, "one", None)
    if error is None:
        error = _errors.one = Error(size=ctypes.sizeof(Error))
    if getattr(library(), name)(*arguments, ctypes.byref(error)) != 0:
        raise LatteError(CODES[error.code], error.message.decode("utf-8", "replace"))


def fill_ids(name: str, *arguments) -> List[int]:
    """The ids that a function writes into a buffer of the caller."""
    count = c_size_t()
    room = 256
    while True:
        ids = (c_int32 * room)()
        call(name, *arguments, ids, room, ctypes.byref(count))
        if count.value <= room:
            return ids[:count.value]
        room = count.value


def fill_bytes(name: str, *arguments) -> bytes:
    """The bytes that a function writes into a buffer of the caller."""
    count = c_size_t()
    room = 1024
    while True:
        text = ctypes.create_string_buffer(room)
        call(name, *arguments, text, room, ctypes.byref(count))
        if count.value <= room:
            return text.raw[:count.value]
        room = count.value


def version() -> str:
    """The version of the library: "0.1.0"."""
    return library().latte_version().decode()


def program() -> str:
    """The path of the `latte` program. Raises LatteError if there is none."""
    clone = clone_of_this_package()
    places = [_HERE / "bin/latte"] + ([clone / "build/release/latte"] if clone else [])
    for place in places:
        if place.is_file():
            return str(place)
    found = shutil.which("latte")
    if found:
        return found
    raise LatteError("not_found", "the program `latte` was not found: put it into PATH, or run `make build` in the clone of "
                                  "this package; tried: " + ", ".join(map(str, places)) + " and PATH")
