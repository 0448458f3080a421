"""A server with the page of this source tree and answers that a test scripts, so that the page is tested without a model and without
a build. Needs Python's standard library, and CMake for the page's libraries."""
import contextlib
import http.client
import http.server
import json
import pathlib
import re
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
FILES = ROOT / "src/serve/web/files"
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "txt": "text/plain"}

PROPS = {"model": "fake-model", "names": ["fake-model"], "version": "0", "max_model_len": 8192, "vocab_size": 1000, "chat_format": "fake",
         "chat_template": "", "has_thinking_switch": True, "defaults": {"temperature": 0.6, "top_p": 0.95},
         "engine": {"page_tokens": 16, "mha_bytes_per_token": 100_000, "cache_bytes": 800_000_000, "weight_bytes": 2_500_000_000,
                    "workspace_bytes": 300_000_000, "max_sequences": 8}}
METRICS = {"vllm:num_requests_running": 0, "vllm:num_requests_waiting": 0, "vllm:generation_tokens_total": 0, "latte:cache_pages": 4000,
           "latte:cache_pages_used": 100, "latte:cache_pages_cached": 50, "latte:cache_page_bytes": 200_000,
           "vllm:prefix_cache_queries_total": 1000, "vllm:prefix_cache_hits_total": 250}


def policy():
    """The Content-Security-Policy of src/serve/web/web_page.cc."""
    text = (ROOT / "src/serve/web/web_page.cc").read_text()
    return "".join(re.findall(r'"([^"]*)"', text.partition("kPolicy =")[2].partition(";\n\n")[0]))


def libraries(folder, root="/"):
    """Writes the page's libraries to a folder, as the build does. root: below it Debian's packages are; an empty folder has none."""
    subprocess.run(["cmake", f"-DOUT={folder}", f"-DROOT={root}", "-P", ROOT / "cmake/web_libraries.cmake"], check=True,
                   stdout=subprocess.DEVNULL)


def pieces(text, size):
    """The content of a stream, in deltas of so many characters."""
    return [{"content": text[at:at + size]} for at in range(0, len(text), size)]


class FakeServer:
    """answer(body): the deltas of an answer, each {content, reasoning_content, tool_calls, …}; a number waits so many seconds; a text is the
    finish_reason. status: of /props and /metrics, if not 200."""

    def __init__(self, folder, root="/"):
        self.folder = pathlib.Path(folder)
        libraries(self.folder, root)
        self.policy = policy()
        self.props = json.loads(json.dumps(PROPS))
        self.metrics = dict(METRICS)
        self.answer = lambda body: pieces("Hello.", 3)
        self.status = 200
        self.key = None
        self.upstream = None  # the port of a server that gets all requests but these for the page's files
        self.bodies = []  # of the requests
        self.paths = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def file(self, path):
        """The bytes of a page's file, or None."""
        name = "index.html" if path == "/" else path.removeprefix("/page/")
        folder = self.folder if name.startswith("libraries/") else FILES
        found = folder / name.removeprefix("libraries/")
        return found.read_bytes() if found.is_file() and ".." not in name else None

    def usage(self, body, generated):
        prompt = len(json.dumps(body)) // 4
        return {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated,
                "prompt_tokens_details": {"cached_tokens": prompt // 2}}

    def events(self, body):
        """The events of an answer."""
        finish, count = "stop", 0
        for part in self.answer(body):
            if isinstance(part, (int, float)):
                time.sleep(part)
            elif isinstance(part, str):
                finish = part
            else:
                count += 1
                if "error" in part:
                    yield part
                    return
                yield {"choices": [{"index": 0, "delta": part, "finish_reason": None}]}
        yield {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
        yield {"choices": [], "usage": self.usage(body, count)}

    def handler(fake):  # noqa: N805  # self is the handler's
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def send(self, status, kind, body):
                self.send_response(status)
                self.send_header("Content-Type", kind + "; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", fake.policy)
                self.send_header("Cross-Origin-Opener-Policy", "same-origin")
                self.send_header("Referrer-Policy", "no-referrer")
                self.send_header("Cache-Control", "no-cache")
                self.end_headers()
                self.wfile.write(body)

            def send_json(self, status, value):
                self.send(status, "application/json", json.dumps(value).encode())

            def passed_on(self, body=None):
                """Sends the request to the other server and its answer back, as it comes."""
                if fake.upstream is None:
                    return False
                connection = http.client.HTTPConnection("127.0.0.1", fake.upstream, timeout=60)
                fields = {name: self.headers[name] for name in ("Content-Type", "Authorization") if name in self.headers}
                try:
                    connection.request(self.command, self.path, body, fields)
                    answer = connection.getresponse()
                except OSError:
                    self.close_connection = True  # it is gone, as for the page
                    return True
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers.get("Content-Type", "text/plain"))
                self.send_header("Connection", "close")
                self.end_headers()
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    while part := answer.read1(65536):
                        self.wfile.write(part)
                        self.wfile.flush()
                connection.close()
                self.close_connection = True
                return True

            def refused(self):
                if fake.key and self.headers.get("Authorization") != f"Bearer {fake.key}":
                    self.send_json(401, {"error": {"message": "the key is not one of the server's"}})
                    return True
                if fake.status != 200:
                    self.send_json(fake.status, {"error": {"message": "the server is busy"}})
                    return True
                return False

            def do_GET(self):  # noqa: N802
                fake.paths.append(self.path)
                body = fake.file(self.path)
                if body is not None:
                    self.send(200, TYPES["html" if self.path == "/" else self.path.rpartition(".")[2]], body)
                elif self.passed_on():
                    pass
                elif self.path in ("/props", "/metrics") and self.refused():
                    pass
                elif self.path == "/props":
                    self.send_json(200, fake.props)
                elif self.path == "/metrics":
                    self.send(200, "text/plain", "".join(f"{name} {value}\n" for name, value in fake.metrics.items()).encode())
                else:
                    self.send_json(404, {"error": {"message": "no such path"}})

            def do_POST(self):  # noqa: N802
                text = self.rfile.read(int(self.headers["Content-Length"]))
                body = json.loads(text)
                if self.passed_on(text) or self.refused():
                    return
                fake.bodies.append(body)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                try:
                    for event in fake.events(body):
                        self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                        self.wfile.flush()
                    self.wfile.write(b"data: [DONE]\n\n")
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the page has stopped the answer
                self.close_connection = True

        return Handler
