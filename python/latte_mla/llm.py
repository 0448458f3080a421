"""A loaded model: text, chats, scores and logits."""
from __future__ import annotations

import asyncio
import atexit
import ctypes
import json
import logging
import math
import os
import threading
import weakref
from ctypes import c_int32, c_uint64, c_void_p
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union, overload

from . import _library as c
from ._progress import Progress
from ._queue import (POLL_MS, AsyncStream, ChunkReader, Hub, Queue, Stream, choice_of, delta_of, deltas_of, error_of,
                     token_logprobs)
from ._request import Prompt, RequestOf, set_number
from .errors import LatteError
from .tokenizer import Messages, Tokenizer
from .types import Choice, Output, SamplingParams, Score

_log = logging.getLogger("latte_mla")
_CHAT = b"/v1/chat/completions"
_open: "weakref.WeakSet[LLM]" = weakref.WeakSet()


def _is_messages(prompt: Any) -> bool:
    return isinstance(prompt, (list, tuple)) and bool(prompt) and isinstance(prompt[0], dict)


def _is_prompt(prompts: Any) -> bool:
    return isinstance(prompts, str) or (len(prompts) > 0 and isinstance(prompts[0], int))


def _engine_options(model: str, options: Dict[str, Any]) -> c.EngineOptions:
    """Raises TypeError for a name that is no option."""
    out = c.EngineOptions()
    c.library().latte_engine_options_init(ctypes.byref(out), ctypes.sizeof(out))
    kinds = c.members(c.EngineOptions)
    for name, value in {"model": model, **options}.items():
        if name not in kinds:
            raise TypeError(f"LLM has no option '{name}'; options: {', '.join(sorted(kinds))}")
        if value is None:
            continue
        if kinds[name] is ctypes.c_char_p:
            setattr(out, name, str(value).encode())
        else:
            set_number(out, name, int(value))
    return out


class LLM:
    """A model and an engine that computes many requests at once, on a thread of its own.

        with latte_mla.LLM("tiny") as llm:
            print(llm.generate("Once upon a time").text)

    model: a folder, a repo id in the Hugging Face cache, a GGUF file, or "tiny". threads, cache_bytes,
    speculative (drafts per token, 0 to 4 or "auto") and `options` are options of the engine; their names
    are in docs/options.md. progress: a bar while the model loads; None: where a person looks; or a function,
    called with what, done and total. log: a function that gets warnings; None: logging.

    All methods may be called from any thread. Python's lock is free while the engine works. After a
    fork, the child cannot use the object. Raises LatteError.
    """

    def __init__(self, model: str = "tiny", *, threads: Optional[int] = None, cache_bytes: Optional[int] = None,
                 speculative: Union[int, str, None] = None,
                 progress: Union[bool, None, Callable[[str, int, int], None]] = None,
                 log: Optional[Callable[[str], None]] = None, **options: Any) -> None:
        self._service = c_void_p()
        self._lock = threading.RLock()  # no call of the library meets its end
        self._pid = os.getpid()
        self._hubs: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = weakref.WeakKeyDictionary()
        self._raised: Optional[BaseException] = None  # by a callback
        engine = _engine_options(str(model), {"threads": threads, "cache_bytes": cache_bytes, "draft_tokens": speculative,
                                              **options})
        bar = Progress(f"loading {model}", None if callable(progress) else progress)
        show = progress if callable(progress) else lambda what, done, total: bar.show(done, total, what)
        tell = log or _log.warning
        # Functions of the library may call them as long as the service loads.
        self._callbacks = (c.Log(self._guarded(lambda _, text: tell(text.decode("utf-8", "replace")))),
                           c.Progress(self._guarded(lambda _, what, done, total: show(what.decode(), done, total))))
        wanted = c.ServiceOptions(ctypes.sizeof(c.ServiceOptions), ctypes.pointer(engine), *self._callbacks, None)
        c.call("latte_service_start", ctypes.byref(wanted), ctypes.byref(self._service))
        _open.add(self)
        try:
            self._wait_until_loaded()
        except BaseException:
            self.close()
            raise
        finally:
            bar.end()
        self._tokenizer = Tokenizer._of_service(self._service.value or 0, self)

    def _guarded(self, function: Callable[..., None]) -> Callable[..., None]:
        """Keeps what `function` raises for the thread that loads."""
        weak = weakref.ref(self)

        def call(*arguments: Any) -> None:
            try:
                function(*arguments)
            except BaseException as raised:
                owner = weak()
                if owner is not None and owner._raised is None:
                    owner._raised = raised

        return call

    def _wait_until_loaded(self) -> None:
        loaded = c_int32()
        while not loaded.value and self._raised is None:
            c.call("latte_service_wait", self._service, POLL_MS, ctypes.byref(loaded))
        if self._raised is not None:
            raise self._raised

    # Life.

    def close(self) -> None:
        """Ends all requests and frees the model, after the running step. May be called twice.
        Other threads' calls of this object then raise; its tokenizer must not be in use."""
        _open.discard(self)
        if os.getpid() != self._pid:  # a fork: the thread that may hold the lock is not here
            self._service = c_void_p()
            return
        with self._lock:
            service, self._service = self._service, c_void_p()
        if service:
            c.library().latte_service_stop(service)

    def __enter__(self) -> "LLM":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_service", None):
            self.close()

    def _check(self) -> None:
        if os.getpid() != self._pid:
            raise LatteError("unavailable", "this process was forked after the model was loaded, and threads do not "
                                            "survive a fork: load the model in the child, or use the start method spawn")
        if not self._service:
            raise LatteError("unavailable", "the LLM is closed")

    def _call(self, name: str, *arguments: Any) -> None:
        self._check()
        with self._lock:
            self._check()
            c.call(name, self._service, *arguments)

    def _cancel(self, number: int) -> None:
        if os.getpid() != self._pid:
            return
        with self._lock:
            if self._service:
                c.call("latte_service_cancel", self._service, number)

    # Requests.

    def _submit(self, queue: Queue, prompt: Prompt, params: SamplingParams, whole: bool) -> int:
        self._check()
        request = RequestOf(self._tokenizer._model, prompt, params)
        number = c_uint64()
        self._call("latte_service_submit", queue.handle, ctypes.byref(request.struct), int(whole), ctypes.byref(number))
        return number.value

    def _answer(self, queue: Queue, url: bytes, body: Dict[str, Any]) -> int:
        data = json.dumps(body).encode()
        number = c_uint64()
        self._call("latte_service_answer", queue.handle, c.Text.of(url), c.Text.of(data), 0, ctypes.byref(number))
        return number.value

    def _results(self, queue: Queue, open_ids: "set[int]") -> Iterator[c.Result]:
        """Results until no id is open. Cancels those that are, when the caller leaves early."""
        try:
            while open_ids:
                for result in queue.take(POLL_MS):
                    error = error_of(result)
                    if result.last:
                        open_ids.discard(result.request)
                    if error:
                        raise error
                    yield result
                self._check()
        finally:
            for number in open_ids:
                self._cancel(number)

    @overload
    def generate(self, prompts: str, params: Optional[SamplingParams] = None, *, progress: Optional[bool] = None) -> Output: ...

    @overload
    def generate(self, prompts: Sequence[Any], params: Any = None, *, progress: Optional[bool] = None) -> Any: ...

    def generate(self, prompts: Any, params: Union[SamplingParams, Sequence[SamplingParams], None] = None, *,
                 progress: Optional[bool] = None) -> Any:
        """Answers one prompt (a text or token ids) with an Output, or a list of prompts with a list in
        their order. The engine computes them together. params: for all, or one per prompt. progress: a
        bar; None: where a person looks.

        Raises LatteError for the first prompt that fails; then the others are cancelled. So are all by Ctrl-C.
        """
        if _is_prompt(prompts):
            return self._generate([prompts], params, False)[0]
        return self._generate(list(prompts), params, progress)

    def _generate(self, prompts: List[Prompt], params: Union[SamplingParams, Sequence[SamplingParams], None],
                  progress: Optional[bool]) -> List[Output]:
        if params is None or isinstance(params, SamplingParams):
            params = [params or SamplingParams()] * len(prompts)
        if len(params) != len(prompts):
            raise ValueError(f"params: expected one, or {len(prompts)} for as many prompts, found {len(params)}")
        bar = Progress("answers", progress)
        queue, open_ids = Queue(), set()  # type: ignore[var-annotated]
        places: Dict[int, int] = {}
        choices: List[Dict[int, Choice]] = [{} for _ in prompts]
        of_prompts: List[Any] = [None] * len(prompts)
        done = 0

        def submit_next() -> bool:
            place = len(places)
            if place == len(prompts):
                return False
            try:
                number = self._submit(queue, prompts[place], params[place], True)
            except LatteError as error:
                if error.code == "exhausted" and open_ids:
                    return False  # the engine's queue is full
                raise
            places[number] = place
            open_ids.add(number)
            return True

        try:
            while submit_next():
                pass
            for result in self._results(queue, open_ids):
                answer, place = result.answer.contents, places[result.request]
                choices[place][answer.choice] = choice_of(answer)
                if answer.prompt_logprobs:
                    of_prompts[place] = token_logprobs(answer.prompt_logprobs, answer.prompt_logprob_count)
                if result.last:
                    done += 1
                    bar.show(done, len(prompts))
                    while submit_next():
                        pass
        except BaseException:
            for number in open_ids:
                self._cancel(number)
            raise
        finally:
            bar.end()
        return [Output(prompt, [found[i] for i in sorted(found)], logprobs)
                for prompt, found, logprobs in zip(prompts, choices, of_prompts)]

    def _chat_body(self, messages: Messages, params: Optional[SamplingParams], fields: Dict[str, Any]) -> Dict[str, Any]:
        return {"messages": list(messages), **(params.chat_fields() if params else {}), **fields}

    def chat(self, messages: Messages, params: Optional[SamplingParams] = None, *, stream: bool = False,
             **fields: Any) -> Any:
        """Answers a conversation with a dict equal to what /v1/chat/completions answers: reasoning and
        calls of tools are split off. `fields` are fields of its body: tools, tool_choice, response_format,
        reasoning_effort … With stream=True: an iterator over the chunks, each a dict.
        """
        body = self._chat_body(messages, params, fields)
        if stream:
            reader = ChunkReader()
            return Stream(self, lambda queue: self._answer(queue, _CHAT, {**body, "stream": True}),
                          lambda result: reader.read(result.bytes.read()))
        return self.post("/v1/chat/completions", body)

    def post(self, url: str, body: Dict[str, Any]) -> Dict[str, Any]:
        """Answers a body of /v1/chat/completions, /v1/completions, /v1/responses or /v1/messages as
        `latte serve` does. Raises LatteError for what the server refuses."""
        queue = Queue()
        text = b""
        for result in self._results(queue, {self._answer(queue, url.encode(), body)}):
            text += result.bytes.read()
        return json.loads(text)

    def _reader(self, prompt: Any, params: Optional[SamplingParams], fields: Dict[str, Any]) -> Any:
        """(submit, read) of a stream."""
        if _is_messages(prompt):
            body = {"stream_options": {"include_usage": True}, **self._chat_body(prompt, params, fields), "stream": True}
            chunks = ChunkReader()
            return (lambda queue: self._answer(queue, _CHAT, body),
                    lambda result: [delta for chunk in chunks.read(result.bytes.read()) for delta in deltas_of(chunk)])
        if fields:
            raise TypeError(f"a prompt takes no fields of a chat, found {', '.join(fields)}")
        return (lambda queue: self._submit(queue, prompt, params or SamplingParams(), False),
                lambda result: [delta_of(result.event.contents)])

    def stream(self, prompt: Union[Prompt, Messages], params: Optional[SamplingParams] = None, **fields: Any) -> Stream:
        """An iterator over the Deltas of the answer to a prompt, or to a conversation (a list of messages).
        The request begins with the call. Closing the iterator cancels it."""
        return Stream(self, *self._reader(prompt, params, fields))

    def astream(self, prompt: Union[Prompt, Messages], params: Optional[SamplingParams] = None,
                **fields: Any) -> AsyncStream:
        """As `stream`, for `async for` in the running event loop, which wakes once per step of the engine
        for all its streams together."""
        loop = asyncio.get_running_loop()
        hub = self._hubs.get(loop)
        if hub is None:
            hub = self._hubs[loop] = Hub(weakref.proxy(self), loop)
        return AsyncStream(hub, *self._reader(prompt, params, fields))

    def score(self, text: Prompt) -> Score:
        """The log-probability of every token of a given text or of given ids, each after those before it.
        A text begins with the model's start token, if it wants one."""
        tokens = self._tokenizer.encode(text) if isinstance(text, str) else [int(token) for token in text]
        if len(tokens) < 2:
            return Score(tokens, [None] * len(tokens), 0.0, 1.0)
        found = self.generate(tokens, SamplingParams(max_tokens=0, prompt_logprobs=0)).prompt_logprobs or []
        logprobs = [one.logprob for one in found]
        total = math.fsum(logprobs)
        return Score(tokens, [None, *logprobs], total, math.exp(-total / len(logprobs)))

    def logits(self, text: Prompt, *, first: int = 0) -> Any:
        """The logits after each given token from number `first` on: a NumPy array [tokens − first,
        vocab_size] of float32. Between two steps of the engine, so other requests wait. Needs NumPy."""
        import numpy
        self._check()
        tokens = self._tokenizer.encode(text) if isinstance(text, str) else [int(token) for token in text]
        if not 0 <= first < max(len(tokens), 1):
            raise LatteError("invalid_argument", f"first: expected 0 to {len(tokens) - 1}, found {first}")
        out = numpy.empty((len(tokens) - first, self._tokenizer.vocab_size), numpy.float32)
        ids = (c_int32 * len(tokens))(*tokens)
        queue, number = Queue(), c_uint64()
        self._call("latte_service_logits", queue.handle, ids, len(tokens), first,
                   out.ctypes.data_as(c_void_p), out.size, 0, ctypes.byref(number))
        open_ids = {number.value}
        try:
            for _ in self._results(queue, open_ids):
                pass
        finally:
            while open_ids:  # the library writes into `out` until its last result
                open_ids -= {result.request for result in queue.take(POLL_MS) if result.last}
        return out

    # What there is to know.

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokenizer

    @property
    def info(self) -> Dict[str, Any]:
        """Sizes and formats of the model, with "options" of the engine, all resolved, and the "version" of the library."""
        options = c.EngineOptions(size=ctypes.sizeof(c.EngineOptions))
        self._call("latte_service_settled_options", ctypes.byref(options))
        values = {name: getattr(options, name) for name in c.members(c.EngineOptions)}
        texts = {name: value.decode() for name, value in values.items() if isinstance(value, bytes)}
        return {**self._tokenizer.info, "options": {**values, **texts}, "version": c.version()}

    def stats(self) -> Dict[str, float]:
        """Counters of the engine since it began, and its state after the last step."""
        out = c.Stats(size=ctypes.sizeof(c.Stats))
        self._call("latte_service_stats", ctypes.byref(out))
        return {name: getattr(out, name) for name in c.members(c.Stats)}


@atexit.register
def _close_all() -> None:
    for one in list(_open):
        one.close()
