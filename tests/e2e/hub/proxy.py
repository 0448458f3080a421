"""An HTTP proxy that leads names to ports of this machine, and fails as a test asks for."""
import base64
import select
import socket
import socketserver
import threading
import time
import urllib.parse

ENDLESS = 4 << 20  # bytes


class Proxy:
    """`hosts`: {"name:port": port of 127.0.0.1}. `user`: "name:password" that is needed. `tls`: a context: the proxy itself speaks
    TLS. `faults`: what the next connections get instead: a status, or "cut", "stall", "garbage", "endless head", "more"."""

    def __init__(self, hosts, user=None, tls=None):
        self.hosts, self.user, self.faults = hosts, user, []
        self.requests = []  # (method, target, {name in small letters: value})
        self.lock = threading.Lock()
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler_of(self))
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        self.url = ("https://" if tls else "http://") + self.address
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def asked(self, method):
        with self.lock:
            return [(target, fields) for asked, target, fields in self.requests if asked == method]


def read_head(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(1 << 16)
        if not piece:
            return None
        head += piece
    return head.decode("latin-1")


def relay(one, other):
    """Passes bytes on until a side ends. TLS may hold bytes that select does not see."""
    while True:
        ready = [side for side in (one, other) if getattr(side, "pending", lambda: 0)()]
        for side in ready or select.select([one, other], [], [])[0]:
            piece = side.recv(1 << 16)
            if not piece:
                return
            (other if side is one else one).sendall(piece)


def handler_of(proxy):
    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            head = read_head(self.request)
            if head is None:
                return
            first, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
            method, target, _ = first.split(" ")
            fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
            with proxy.lock:
                proxy.requests.append((method, target, fields))
                fault = proxy.faults.pop(0) if proxy.faults else None
            if fault:
                return self.fail(fault)
            wanted = proxy.user and "Basic " + base64.b64encode(proxy.user.encode()).decode()
            if wanted and fields.get("proxy-authorization") != wanted:
                return self.answer("407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"")
            if method == "CONNECT":
                return self.tunnel(target)
            parts = urllib.parse.urlsplit(target)
            path = parts.path + ("?" + parts.query if parts.query else "")
            kept = [line for line in lines if not line.lower().startswith("proxy-")]
            with self.connect(f"{parts.hostname}:{parts.port or 80}") as server:
                server.sendall("\r\n".join([f"{method} {path} HTTP/1.1", *kept, "Connection: close", "", ""]).encode("latin-1"))
                while piece := server.recv(1 << 16):
                    self.request.sendall(piece)

        def answer(self, status):
            self.request.sendall(f"HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nno".encode())

        def connect(self, target):
            return socket.create_connection(("127.0.0.1", proxy.hosts[target]))

        def tunnel(self, target):
            if target not in proxy.hosts:
                return self.answer("502 Bad Gateway")
            with self.connect(target) as server:
                self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                relay(self.request, server)

        def fail(self, fault):
            if fault == "stall":
                time.sleep(600)
            elif fault == "garbage":
                self.request.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
            elif fault == "more":
                self.request.sendall(b"HTTP/1.1 200 OK\r\n\r\n220 ready\r\n")
                time.sleep(600)
            elif fault == "endless head":
                self.request.sendall(b"HTTP/1.1 200 OK\r\n")
                for _ in range(ENDLESS // 1000):
                    self.request.sendall(b"X-Pad: " + b"x" * 991 + b"\r\n")
            elif fault != "cut":
                self.answer(f"{fault} Status")

    return Handler
