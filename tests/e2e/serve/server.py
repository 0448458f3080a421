"""Starts `latte serve` for a test and speaks HTTP with it. Needs only Python's standard library."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time

START_SECONDS = 60


class Server:
    """A running server. `flags`: of `latte serve`; the port is a free one."""

    def __init__(self, binary, *flags, model="tiny", env=None, wait=True, preexec_fn=None):
        port = [] if "--port" in flags else ["--port", "0"]
        command = [binary, "serve", model, *port, *map(str, flags)]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                        env={**os.environ, **(env or {})}, preexec_fn=preexec_fn)
        self.lines = []
        self.port = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._wait_for(lambda: self.port is not None)
        if wait:
            self._wait_for(lambda: any(line.startswith("ready") for line in self.lines))

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            found = re.match(r"listening on https?://.*:(\d+)$", self.lines[-1])
            if found:
                self.port = int(found[1])

    def _wait_for(self, condition):
        end = time.monotonic() + START_SECONDS
        while not condition():
            if self.process.poll() is not None or time.monotonic() > end:
                self._reader.join(5)
                raise AssertionError("the server did not start:\n" + "\n".join(self.lines))
            time.sleep(0.01)

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def socket(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """Status, fields and body; the body is parsed where it is JSON."""
        connection = self.connect(timeout)
        fields = dict(headers or {})
        if body is not None:
            fields.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request(method, path, body, fields)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        return answer.status, answer.headers, json.loads(text) if is_json and text else text.decode()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body, **more):
        return self.request("POST", path, body, **more)

    def stream(self, path, body, headers=None):
        """The connection and its answer, from which events() reads."""
        connection = self.connect()
        connection.request("POST", path, json.dumps({**body, "stream": True}),
                           {"Content-Type": "application/json", **(headers or {})})
        return connection, connection.getresponse()

    def metric(self, name):
        text = self.get("/metrics")[2]
        return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(rf"{re.escape(name)}[{{ ]", line))

    def stop(self, signal_number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        code = self.process.wait(120)
        self._reader.join(10)
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait(60)
        self._reader.join(10)
        self.process.stderr.close()


def events(answer):
    """The data of every server-sent event: parsed JSON, or the text [DONE]."""
    for line in answer:
        if line.startswith(b"data: "):
            text = line[6:].strip().decode()
            yield text if text == "[DONE]" else json.loads(text)


def until(condition, seconds=30):
    """Whether `condition` becomes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
