"""A server with the OpenAI API whose answers a test scripts. For tests of the client side; needs only Python's standard
library."""
import http.server
import json
import threading


class ScriptedServer:
    """Answers POST by script(handler, body), with the body parsed, and GET by pages {path: object}. Requests are kept in
    `requests` as (path, headers, body). Use it as a context manager."""

    def __init__(self, script=None, pages=None):
        self.requests = []
        self.script = script or (lambda handler, body: handler.stream(["Hello", " there"]))
        self.pages = {"/v1/models": {"data": [{"id": "scripted"}]}, **(pages or {})}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            server_version = "scripted"

            def log_message(self, *args):
                pass

            def do_GET(self):
                outer.requests.append((self.path, self.headers, None))
                page = outer.pages.get(self.path)
                self.json(page or {"error": {"message": "no such page"}}, 200 if page else 404)

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append((self.path, self.headers, body))
                try:
                    outer.script(self, body)
                except ConnectionError:  # the client has left
                    outer.left.set()
                    self.close_connection = True

            def json(self, value, status=200, **fields):
                text = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                for name, field in fields.items():
                    self.send_header(name, field)
                self.end_headers()
                self.wfile.write(text)

            def begin(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()

            def raw(self, text):
                data = text.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def event(self, value):
                self.raw(f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n")

            def end(self):
                self.wfile.write(b"0\r\n\r\n")
                self.wfile.flush()

            def chunk(self, text, finish=None):
                """An event of the endpoint that was requested."""
                if self.path.endswith("/chat/completions"):
                    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
                else:
                    choice = {"index": 0, "text": text, "finish_reason": finish}
                self.event({"id": "x", "choices": [choice]})

            def stream(self, texts, finish="stop", usage=None, done=True):
                self.begin()
                for text in texts:
                    self.chunk(text)
                self.chunk("", finish)
                if usage:
                    self.event({"id": "x", "choices": [], "usage": usage})
                if done:
                    self.event("[DONE]")
                self.end()

        self.left = threading.Event()  # a client has left within an answer
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()

    def posts(self):
        return [(path, headers, body) for path, headers, body in self.requests if body is not None]
