"""Downloads and a server, which the `latte` program provides."""
from __future__ import annotations

import re
import subprocess
import threading
from typing import Any, List, Optional

from ._library import program
from .errors import LatteError
from .tokenizer import Tokenizer

_CODES = {2: "invalid_argument", 3: "internal"}


def _flags(options: Any) -> List[str]:
    """{"max_sequences": 8, "yes": True} to ["--max-sequences", "8", "--yes"]."""
    out: List[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            out.append(flag)
        elif value is not None and value is not False:
            out += [flag, str(value)]
    return out


def pull(model: str, **flags: Any) -> str:
    """Downloads a model from Hugging Face, as `latte pull` does, with its progress on standard error.
    `flags` are its flags, with underscores. Returns the folder. Raises LatteError."""
    command = [program(), "pull", model, *_flags(flags)]
    try:
        done = subprocess.run(command, check=False)
    except KeyboardInterrupt:
        raise  # the program got it too; it keeps what it has
    if done.returncode != 0:
        raise LatteError(_CODES.get(done.returncode, "unavailable"),
                         f"latte pull {model} ended with {done.returncode}; its message is on standard error")
    return Tokenizer(model).info["path"]


class Server:
    """`latte serve` as a process: an OpenAI-compatible server. `flags` are its flags, with underscores.

        with latte_mla.Server("tiny") as server:
            print(server.url)  # http://127.0.0.1:41237

    The constructor returns when the model is loaded. Raises LatteError with the server's last lines.
    """

    def __init__(self, model: str = "tiny", *, port: int = 0, **flags: Any) -> None:
        self.url: Optional[str] = None
        self.lines: List[str] = []  # of its log
        self._changed = threading.Condition()
        self._ready = self._ended = False
        self.process = subprocess.Popen(
            [program(), "serve", model, "--port", str(port), *_flags(flags)], stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.lines = [*self.lines[-199:], line.rstrip("\n")]
                found = re.match(r"listening on (https?://\S+)", line)
                self.url = found[1] if found else self.url
                self._ready = self._ready or line.startswith("ready")
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _wait(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._ended)
        if not self._ready:
            code = self.process.wait()
            raise LatteError(_CODES.get(code, "unavailable"), "the server did not start:\n" + "\n".join(self.lines[-20:]))

    def close(self) -> None:
        """Stops the server and waits for its end."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self._reader.join()
        if self.process.stderr:
            self.process.stderr.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()
