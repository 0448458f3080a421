"""`latte serve` as a child process: its address, its log, its memory and its open files."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import urllib.request

URL = re.compile(r"https?://(?:127\.0\.0\.1|localhost|\[::1\]):\d+")


class Server:
    """Starts the server and waits until it is ready; `with` stops it."""

    def __init__(self, latte, log, *flags, model="tiny", seconds=60):
        self.log = pathlib.Path(log)
        self.file = open(self.log, "w", encoding="utf-8")
        self.process = subprocess.Popen([str(latte), "serve", model, "--port", "0", "--seed", "0", *map(str, flags)],
                                        stdin=subprocess.DEVNULL, stdout=self.file, stderr=subprocess.STDOUT)
        try:
            self.url = self.wait_for_url(time.monotonic() + seconds)
        except BaseException:
            self.stop()
            raise

    def wait_for_url(self, deadline):
        while time.monotonic() < deadline and self.is_alive():
            found = URL.search(self.log.read_text(encoding="utf-8"))
            if found and self.answers(found[0] + "/ready"):
                return found[0]
            time.sleep(0.05)
        raise RuntimeError(f"the server does not get ready; {self.log} says:\n{self.log.read_text(encoding='utf-8')[-2000:]}")

    @staticmethod
    def answers(url):
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return reply.status == 200
        except OSError:
            return False

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as reply:
            return reply.read().decode()

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as reply:
            return json.load(reply)

    def is_alive(self):
        return self.process.poll() is None

    def resident_bytes(self):
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self, seconds=30):
        """SIGTERM; returns the exit status, negative for a signal."""
        if self.is_alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
