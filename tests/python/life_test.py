"""Life and death of latte_mla.LLM: asyncio, cancellation, callbacks, signals, forks, memory.
Usage: life_test.py BUILD_DIR LATTE_BINARY."""
import asyncio
import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
import unittest
import unittest.mock

import support

STORY = "Once upon a time"
ENDLESS = """
import latte_mla, sys
llm = latte_mla.LLM("tiny", threads=1, cache_bytes=32 << 20)
endless = latte_mla.SamplingParams(max_tokens=10**6, ignore_eos=True)
print("ready", flush=True)
try:
    while True:
        CALL
except KeyboardInterrupt:
    llm.generate("a", latte_mla.SamplingParams(max_tokens=1))
    print("cancelled", int(llm.stats()["requests_cancelled"]), flush=True)
"""


class Life(support.WithTiny):
    def test_twenty_streams_wake_once_per_step(self):
        wanted = self.llm.generate([f"{i} birds" for i in range(20)], self.params(max_tokens=16), progress=False)

        async def text_of(i):
            return "".join([delta.text async for delta in self.llm.astream(f"{i} birds", self.params(max_tokens=16))])

        async def all_texts():
            texts = await asyncio.gather(*(text_of(i) for i in range(20)))
            return texts, self.llm._hubs[asyncio.get_running_loop()].wakes

        steps = self.llm.stats()["steps"]
        texts, wakes = asyncio.run(all_texts())
        self.assertEqual(texts, [one.text for one in wanted])
        self.assertLessEqual(wakes, self.llm.stats()["steps"] - steps)
        self.assertLess(wakes, 20 * 16 / 2)

    def test_asynchronous_chats_and_cancellation(self):
        before = self.llm.stats()["requests_cancelled"]

        async def run():
            chat = [{"role": "user", "content": "Hello"}]
            text = "".join([d.text async for d in self.llm.astream(chat, self.params())])
            task = asyncio.ensure_future(self.forever())
            await asyncio.sleep(0.2)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            stream = self.llm.astream(STORY, self.params(max_tokens=10**6))
            await stream.__anext__()
            await stream.aclose()
            async for _ in self.llm.astream(STORY, self.params(max_tokens=10**6)):
                break  # the iterator is dropped
            with self.assertRaises(self.latte.LatteError):
                self.llm.astream(STORY, self.params(temperature=-1.0))
            return text

        text = asyncio.run(run())
        self.assertEqual(text, self.llm.chat([{"role": "user", "content": "Hello"}], self.params())["choices"][0]["message"]["content"])
        self.assertEqual(self.llm.stats()["requests_cancelled"] - before, 3)

    async def forever(self):
        async for _ in self.llm.astream(STORY, self.params(max_tokens=10**6)):
            pass

    def test_a_callback_that_raises(self):
        def log(message):
            raise RuntimeError("from the callback")

        # The weights are checked, so the service tells its progress.
        with self.assertRaisesRegex(RuntimeError, "from the callback"):
            self.latte.LLM("tiny", check_weights=True, progress=lambda what, done, total: log(what), **support.SMALL)
        told = []
        with self.latte.LLM("tiny", check_weights=True, progress=lambda *seen: told.append(seen), **support.SMALL):
            self.assertEqual(told[-1][0], "bytes checked")
        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            for _ in self.llm.stream(STORY, self.params(max_tokens=10**6)):
                1 / 0
        self.assertEqual(len(self.llm.generate(STORY, self.params()).token_ids), 8)

    def test_other_threads_run_meanwhile(self):
        ticks, ended = [], threading.Event()

        def tick():
            while not ended.wait(0.001):
                ticks.append(1)

        thread = threading.Thread(target=tick)
        thread.start()
        found = self.llm.generate([STORY] * 4, self.params(max_tokens=400), progress=False)
        ended.set()
        thread.join()
        self.assertEqual(len(found), 4)
        self.assertGreater(len(ticks), 10)

    def test_progress_in_terminals_and_notebooks(self):
        from latte_mla import _progress
        with unittest.mock.patch.object(_progress, "SILENT_SECONDS", -1):
            with contextlib.redirect_stderr(io.StringIO()) as terminal:
                bar = _progress.Progress("answers", True)
                bar.show(1, 2)
                bar.show(2, 2)
                bar.end()
                _progress.Progress("answers").show(1, 2)  # no person looks
            self.assertTrue(terminal.getvalue().endswith(f"\r[{'#' * 30}] answers: 2/2\n"), terminal.getvalue())
            shown = []
            notebook = types.SimpleNamespace(
                get_ipython=type("ZMQInteractiveShell", (), {}),
                display=types.SimpleNamespace(HTML=str, display=lambda html, display_id: shown.append(html) or
                                              types.SimpleNamespace(update=shown.append)))
            with unittest.mock.patch.dict(sys.modules, {"IPython": notebook, "IPython.display": notebook.display}):
                bar = _progress.Progress("<answers>")
                bar.show(1, 2)
                bar.show(2, 2)
        self.assertEqual(shown[-1], '<progress value="2" max="2"></progress> &lt;answers&gt;: 2/2')

    def test_ctrl_c_cancels(self):
        for call in ("llm.generate('Once', endless)", "list(llm.stream('Once', endless))",
                     "llm.chat([{'role': 'user', 'content': 'a'}], endless)"):
            with self.subTest(call):
                process = subprocess.Popen([sys.executable, "-c", ENDLESS.replace("CALL", call)], text=True,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertEqual(process.stdout.readline(), "ready\n")
                time.sleep(0.3)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
                self.assertEqual((out, process.returncode), ("cancelled 1\n", 0), err)

    def test_a_fork_raises(self):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            code = 9
            try:
                self.llm.generate(STORY, self.params())
            except self.latte.LatteError as error:
                code = 0 if error.code == "unavailable" and "fork" in str(error) else 8
            finally:
                self.llm.close()  # does not wait for a thread that is not here
                os._exit(code)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(len(self.llm.generate(STORY, self.params()).token_ids), 8)

    def test_a_closed_llm(self):
        llm = self.latte.LLM("tiny", **support.SMALL)
        stream = llm.stream(STORY, self.params(max_tokens=10**6))
        llm.close()
        llm.close()
        for call in (lambda: llm.generate(STORY), lambda: next(stream), lambda: llm.stats(), lambda: llm.tokenizer.encode("a")):
            with self.assertRaises(self.latte.LatteError) as caught:
                call()
            self.assertEqual(caught.exception.code, "unavailable")

    def test_an_error_survives_pickle(self):
        error = pickle.loads(pickle.dumps(self.latte.LatteError("corrupt", "a file")))
        self.assertEqual((error.code, str(error)), ("corrupt", "a file"))

    def test_a_program_that_ends_without_close(self):
        done = support.python("import latte_mla; llm = latte_mla.LLM('tiny', threads=1, cache_bytes=1 << 25)\n"
                              "s = llm.stream('Once', latte_mla.SamplingParams(max_tokens=10**6, ignore_eos=True)); next(s)")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_no_library(self):
        done = support.python("import latte_mla; latte_mla.Tokenizer('tiny')", env={**os.environ, "LATTE_LIBRARY": "/no/lib.so"})
        self.assertIn("set LATTE_LIBRARY", done.stderr)

    def test_many_requests_leave_no_memory(self):
        one = self.params(max_tokens=1)
        prompts = [[5 + i % 50] for i in range(2000)]
        self.llm.generate(prompts, one, progress=False)
        before = support.memory_bytes()
        for _ in range(5):
            self.llm.generate(prompts, one, progress=False)
        self.assertLess(support.memory_bytes() - before, 8 << 20)


if __name__ == "__main__":
    support.main()
