"""A server that answers as the Hugging Face Hub does, and fails as a test asks for.

Two listeners: the Hub on 127.0.0.1 and its storage on localhost with another port, to which the Hub redirects for large
files. Behaviour: huggingface_hub's file_download.py and hf_api.py, and the answers of the Hub.
"""
import email.utils
import hashlib
import http.server
import json
import re
import threading
import time
import urllib.parse

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git_sha1(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Fault:
    """What goes wrong with the next `times` answers for files whose name holds `name`."""

    def __init__(self, name="", times=1, where="storage", status=None, headers=None, cut=None, stall=None, body=None, length=None,
                 location=None):
        self.name, self.times, self.where = name, times, where
        self.status, self.headers, self.cut, self.stall = status, headers or {}, cut, stall
        self.body, self.length, self.location = body, length, location


class Hub:
    """`files`: {name: bytes}. Attributes may be changed between requests."""

    def __init__(self, files, repo="org/model", large=(".safetensors",), commit=COMMIT, tls=None, also=()):
        self.tls = tls  # a context, if it speaks TLS
        self.files, self.repo, self.large, self.commit = dict(files), repo, tuple(large), commit
        self.also = set(also)  # other repositories, with the same files
        self.token, self.gated = None, False  # a token that is needed; only after its owner has accepted a licence
        self.faults = []
        self.ranges, self.slow = True, 0.0    # whether the storage knows ranges; seconds per 64 KiB
        self.etag_of_storage = '"storage-1"'
        self.linked = {}                      # {name: headers of the redirect}
        self.edit_listing = lambda listing: listing
        self.requests = []                    # (where, path, headers)
        self.lock = threading.Lock()
        self.servers = [self.listen("127.0.0.1", "hub"), self.listen("localhost", "storage")]
        self.url = f"http://127.0.0.1:{self.servers[0].server_port}"
        self.storage_url = f"http://localhost:{self.servers[1].server_port}"

    def listen(self, host, where):
        server = http.server.ThreadingHTTPServer((host, 0), handler_of(self, where))
        server.handle_error = lambda *_: None  # a client that leaves
        server.daemon_threads = True
        if self.tls:
            server.socket = self.tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return server

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def is_large(self, name):
        return name.endswith(self.large)

    def etag(self, name):
        data = self.files[name]
        return hashlib.sha256(data).hexdigest() if self.is_large(name) else git_sha1(data)

    def sibling(self, name):
        data = self.files[name]
        out = {"rfilename": name, "size": len(data), "blobId": git_sha1(data)}
        if self.is_large(name):
            out["lfs"] = {"sha256": self.etag(name), "size": len(data), "pointerSize": 134}
        return out

    def listing(self):
        return self.edit_listing({"id": self.repo, "sha": self.commit, "gated": "auto" if self.gated else False,
                                  "siblings": [self.sibling(name) for name in self.files]})

    def tree(self):
        """What snapshot_download of huggingface_hub asks for."""
        out = []
        for sibling in self.listing()["siblings"]:
            entry = {"type": "file", "path": sibling["rfilename"], "size": sibling["size"], "oid": sibling["blobId"]}
            if "lfs" in sibling:
                entry["lfs"] = {"oid": sibling["lfs"]["sha256"], "size": sibling["size"], "pointerSize": 134}
            out.append(entry)
        return out

    def take_fault(self, where, name):
        with self.lock:
            for fault in self.faults:
                if fault.where == where and fault.name in name and fault.times > 0:
                    fault.times -= 1
                    return fault
        return None

    def asked(self, where, part=""):
        """The headers of the requests whose path holds `part`."""
        with self.lock:
            return [headers for place, path, headers in self.requests if place == where and part in path]


def handler_of(hub, where):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            path = urllib.parse.unquote(self.path)
            with hub.lock:
                hub.requests.append((where, path, dict(self.headers.items())))
            fault = hub.take_fault(where, path)
            try:
                if fault and fault.status:
                    self.answer(fault.status, fault.headers, b"")
                elif where == "storage":
                    self.send_stored(path.split("?")[0].removeprefix("/blob/"), fault)
                else:
                    self.answer_as_hub(path.split("?")[0], fault)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def answer(self, status, headers, body):
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def refuse(self, status, code, message):
            self.answer(status, {"X-Error-Code": code, "X-Error-Message": message}, b'{"error":"%s"}' % message.encode())

        def answer_as_hub(self, path, fault):
            sent = self.headers.get("Authorization")
            listed = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(?:revision|tree)/(.+)", path)
            resolved = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
            repo = (listed or resolved or [None, None])[1]
            if repo != hub.repo and repo not in hub.also:
                return self.refuse(401, "RepoNotFound", "Invalid username or password.")
            if hub.token and sent != f"Bearer {hub.token}" and not (hub.gated and listed):
                return self.refuse(401, "GatedRepo" if hub.gated else "RepoNotFound", "Access is restricted")
            if hub.gated and resolved and hub.gated != "accepted":
                return self.refuse(403, "GatedRepo", "Access to model is restricted")
            if listed:
                if listed[2] not in ("main", "v1", "refs/pr/1", hub.commit):
                    return self.refuse(404, "RevisionNotFound", "Invalid rev id")
                return self.answer(200, {"Content-Type": "application/json"}, json.dumps(hub.tree() if "/tree/" in path else hub.listing()).encode())
            name = resolved[3]
            if name not in hub.files:
                return self.refuse(404, "EntryNotFound", "Entry not found")
            headers = {"X-Repo-Commit": hub.commit}
            if not hub.is_large(name):
                data = fault.body if fault and fault.body is not None else hub.files[name]
                return self.send_bytes(data, fault, headers | {"ETag": f'"{hub.etag(name)}"'})
            headers |= {"X-Linked-Size": str(len(hub.files[name])), "X-Linked-Etag": f'"{hub.etag(name)}"', "ETag": '"pointer"',
                        "Location": f"{hub.storage_url}/blob/{urllib.parse.quote(name)}?signature=secret"}
            if fault and fault.location:
                headers["Location"] = fault.location
            return self.answer(302, headers | hub.linked.get(name, {}), b"Found. Redirecting")

        def send_stored(self, name, fault):
            data = fault.body if fault and fault.body is not None else hub.files[name]
            self.send_bytes(data, fault, {"ETag": hub.etag_of_storage, "Accept-Ranges": "bytes"})

        def send_bytes(self, data, fault, headers):
            wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            condition = self.headers.get("If-Range")
            status, begin, end = 200, 0, len(data)
            if wanted and hub.ranges and condition in (None, headers.get("ETag")):
                status, begin = 206, int(wanted[1])
                end = min(int(wanted[2] or len(data) - 1) + 1, len(data))
                headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
            body = data[begin:end]
            headers["Content-Length"] = str(fault.length if fault and fault.length is not None else len(body))
            headers["Date"] = email.utils.formatdate(usegmt=True)
            self.send_response_only(status)
            for key, value in (headers | (fault.headers if fault else {})).items():
                self.send_header(key, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            stop = len(body) if not fault or fault.cut is None else fault.cut
            for at in range(0, min(stop, len(body)), 1 << 16):
                self.wfile.write(body[at:min(at + (1 << 16), stop)])
                time.sleep(hub.slow)
            if fault and fault.stall:
                self.wfile.flush()
                time.sleep(fault.stall)
            if stop < len(body) or (fault and (fault.stall or fault.length is not None)):
                self.close_connection = True

    return Handler
