"""Results of a service, for a thread that waits or for an event loop."""
from __future__ import annotations

import asyncio
import ctypes
import json
import weakref
from collections import deque
from ctypes import POINTER, c_int32, c_size_t, c_void_p
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional

from . import _library as c
from .errors import CODES, LatteError
from .types import Choice, Delta, TokenLogprob, Usage

POLL_MS = 100  # a signal, such as Ctrl-C, waits at most so long


def token_logprobs(array: Any, count: int) -> List[TokenLogprob]:
    out = []
    for i in range(count):
        one = array[i]
        top = {one.top[j].token: one.top[j].logprob for j in range(one.top_count)}
        out.append(TokenLogprob(one.chosen.token, one.chosen.logprob, top))
    return out


def error_of(result: c.Result) -> Optional[LatteError]:
    """The error of a request as a whole, or of one of its answers."""
    if result.error_code:
        return LatteError(CODES[result.error_code], (result.error_message or b"").decode("utf-8", "replace"))
    event = result.answer.contents.end if result.answer else result.event
    if event and event.contents.error_code:
        found = event.contents
        return LatteError(CODES[found.error_code], found.error_message.decode("utf-8", "replace"))
    return None


def usage_of(event: c.Event) -> Usage:
    return Usage(event.prompt_tokens, event.cached_tokens, event.generated_tokens, event.drafted_tokens,
                 event.accepted_tokens, event.queue_seconds, event.prefill_seconds)


def choice_of(answer: c.Answer) -> Choice:
    end = answer.end.contents
    return Choice(answer.text.text(), answer.tokens[:answer.token_count], c.FINISH[answer.finish],
                  end.stop_string.text() or None,
                  token_logprobs(answer.logprobs, answer.token_count) if answer.logprobs else None, usage_of(end))


def delta_of(event: c.Event) -> Delta:
    finish = event.finish
    return Delta(event.text.text(), event.choice, event.token if event.token >= 0 else None,
                 token_logprobs(event.logprobs, 1)[0] if event.logprobs else None,
                 c.FINISH[finish] if finish else None, usage_of(event) if finish else None)


class ChunkReader:
    """Server-sent events of /v1/chat/completions to the chunks in them. A result holds whole events."""

    def read(self, data: bytes) -> List[Dict[str, Any]]:
        out = []
        for line in data.decode().split("\n"):
            if line.startswith("data: {"):
                chunk = json.loads(line[len("data: "):])
                if "error" not in chunk:  # the result carries it too
                    out.append(chunk)
        return out


def deltas_of(chunk: Dict[str, Any]) -> Iterator[Delta]:
    usage = chunk.get("usage")
    for choice in chunk.get("choices", ()):
        delta = choice.get("delta", {})
        yield Delta(delta.get("content") or "", choice.get("index", 0), None, None, choice.get("finish_reason"), usage,
                    delta.get("reasoning_content") or delta.get("reasoning") or "", delta.get("tool_calls"), chunk)
    if usage and not chunk.get("choices"):
        yield Delta(usage=usage, chunk=chunk)


class Queue:
    """A latte_queue. One thread at a time takes from it."""

    def __init__(self) -> None:
        self.handle = c_void_p()
        c.call("latte_queue_create", ctypes.byref(self.handle))
        self._results = POINTER(POINTER(c.Result))()
        self._count = c_size_t()

    def take(self, timeout_ms: int) -> List[c.Result]:
        """All results, valid until the next call; waits for the first one."""
        c.call("latte_queue_take", self.handle, timeout_ms, ctypes.byref(self._results), ctypes.byref(self._count))
        return [self._results[i].contents for i in range(self._count.value)]

    def descriptor(self) -> int:
        out = c_int32()
        c.call("latte_queue_descriptor", self.handle, ctypes.byref(out))
        return out.value

    def close(self) -> None:
        handle, self.handle = self.handle, c_void_p()
        c.library().latte_queue_destroy(handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.close()


Submit = Callable[[Queue], int]  # gives the id
Read = Callable[[c.Result], List[Any]]  # the items in a result


class Stream:
    """An iterator over the deltas of an answer. `close`, also at the end of a `with`, cancels it."""

    def __init__(self, owner: Any, submit: Submit, read: Read) -> None:
        self._owner, self._read = owner, read
        self._items: Deque[Any] = deque()
        self._queue: Optional[Queue] = Queue()
        self._id = submit(self._queue)

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> Any:
        while not self._items:
            if self._queue is None:
                raise StopIteration
            self._owner._check()
            try:
                self._take()
            except BaseException:  # Ctrl-C too
                self.close()
                raise
        return self._items.popleft()

    def _take(self) -> None:
        queue = self._queue  # keeps the results alive
        assert queue is not None
        for result in queue.take(POLL_MS):
            error = error_of(result)
            if error:
                raise error
            self._items.extend(self._read(result))
            if result.last:
                self._queue = None

    def close(self) -> None:
        """Cancels the answer, unless it has ended."""
        if self._queue is not None:
            self._queue = None
            self._items.clear()
            self._owner._cancel(self._id)

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_id", None) is not None:
            self.close()


class AsyncStream:
    """An asynchronous iterator over the deltas of an answer. `aclose` cancels it, and so does its end
    of life."""

    def __init__(self, hub: "Hub", submit: Submit, read: Read) -> None:
        self._hub, self._read = hub, read
        self._items: Deque[Any] = deque()
        self._error: Optional[BaseException] = None
        self._ended = False
        self._waiting: Optional["asyncio.Future[None]"] = None
        self._id = hub.add(self, submit)

    def __aiter__(self) -> "AsyncStream":
        return self

    async def __anext__(self) -> Any:
        while not self._items:
            if self._error is not None:
                error, self._error, self._ended = self._error, None, True
                raise error
            if self._ended:
                raise StopAsyncIteration
            self._waiting = self._hub.loop.create_future()
            try:
                await self._waiting
            except asyncio.CancelledError:
                self.close()
                raise
            finally:
                self._waiting = None
        return self._items.popleft()

    def _add(self, result: c.Result) -> None:
        self._error = error_of(result)
        if self._error is None:
            self._items.extend(self._read(result))
        if result.last or self._error is not None:
            self._end()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _end(self) -> None:
        self._ended = True
        self._hub.remove(self._id)

    def close(self) -> None:
        """Cancels the answer, unless it has ended. Call it on the thread of the loop."""
        if not self._ended:
            self._end()
            self._items.clear()
            self._hub.owner._cancel(self._id)
            if self._waiting is not None and not self._waiting.done():
                self._waiting.set_result(None)

    async def aclose(self) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_id", None) is not None:
            self.close()


class Hub:
    """The streams of one event loop. The loop wakes once for all that a step made for them."""

    def __init__(self, owner: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.owner, self.loop = owner, loop
        self.wakes = 0
        self._queue = Queue()
        self._streams: Dict[int, "weakref.ref[AsyncStream]"] = {}  # by id
        self._listening = False

    def add(self, stream: AsyncStream, submit: Submit) -> int:
        number = submit(self._queue)
        self._streams[number] = weakref.ref(stream)
        if not self._listening:
            self.loop.add_reader(self._queue.descriptor(), self._ready)
            self._listening = True
        return number

    def remove(self, number: int) -> None:
        self._streams.pop(number, None)
        if not self._streams and self._listening and not self.loop.is_closed():
            self.loop.remove_reader(self._queue.descriptor())
            self._listening = False

    def _ready(self) -> None:
        self.wakes += 1
        for result in self._queue.take(0):
            reference = self._streams.get(result.request)
            stream = reference() if reference else None
            if stream is not None:
                stream._add(result)
