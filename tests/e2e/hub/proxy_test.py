"""latte pull and latte chat --url through proxies: with and without TLS and passwords, and with proxies that fail.
Usage: proxy_test.py LATTE_BINARY; needs only Python's standard library and the openssl program.
"""
import http.server
import json
import os
import pathlib
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest

import pull_test
from proxy import Proxy
from pull_test import PullCase, TOKEN

SMALL = {"config.json": b'{"model_type": "deepseek_v3"}\n', "model.safetensors": bytes(range(256)) * 4000}


class ProxyCase(PullCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.certificate, key = (str(pathlib.Path(folder.name) / name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cls.certificate, "-days", "2",
                        "-subj", "/CN=latte test", "-addext",
                        "subjectAltName=DNS:hub.test,DNS:storage.test,DNS:chat.test,IP:127.0.0.1"], check=True, capture_output=True)
        cls.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        cls.tls.load_cert_chain(cls.certificate, key)

    def world(self, tls=False, **how):
        """A Hub at hub.test with a storage at storage.test, which only the proxy knows."""
        hub = self.hub(SMALL, tls=self.tls if tls else None)
        scheme, port = ("https", 443) if tls else ("http", 80)
        ports = [server.server_port for server in hub.servers]
        hub.url, hub.storage_url = f"{scheme}://hub.test", f"{scheme}://storage.test"
        proxy = self.proxy({f"hub.test:{port}": ports[0], f"storage.test:{port}": ports[1]}, **how)
        return hub, proxy

    def proxy(self, hosts, **how):
        proxy = Proxy(hosts, **how)
        self.addCleanup(proxy.close)
        return proxy

    def pull(self, hub, *arguments, **more):
        more = {"NO_PROXY": "", "SSL_CERT_FILE": self.certificate} | more
        return super().pull(hub, *arguments, **more)

    def assert_all(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_content(SMALL, SMALL)


class Plain(ProxyCase):
    def test_every_request_has_the_whole_address(self):
        hub, proxy = self.world()
        self.assert_all(self.pull(hub, http_proxy=proxy.url, HF_TOKEN=TOKEN))
        targets = [target for target, _ in proxy.asked("GET")]
        self.assertTrue(all(target.startswith(("http://hub.test/", "http://storage.test/")) for target in targets), targets)
        self.assertIn("http://storage.test/blob/model.safetensors?signature=secret", targets)
        for target, fields in proxy.asked("GET"):
            self.assertEqual(fields.get("authorization"), f"Bearer {TOKEN}" if "//hub.test/" in target else None, target)
            self.assertNotIn("proxy-authorization", fields)
            self.assertEqual(fields["host"], target.split("/")[2])

    def test_variables(self):
        hub, proxy = self.world()
        self.assert_all(self.pull(hub, all_proxy=proxy.address))
        self.assert_all(self.pull(hub, ALL_PROXY=proxy.address, https_proxy="http://127.0.0.1:1"))
        for more in ({"HTTP_PROXY": proxy.url}, {"https_proxy": proxy.url}, {"http_proxy": proxy.url, "no_proxy": "x,.hub.test:80"},
                     {"http_proxy": proxy.url, "NO_PROXY": "*"}):
            with self.subTest(more):
                before = len(proxy.requests)
                done = self.pull(hub, "--retries", 0, **more)
                self.assertEqual(done.returncode, 1)
                self.assertIn("http://hub.test: no address for 'hub.test'", done.stderr)
                self.assertEqual(len(proxy.requests), before)

    def test_hosts_of_this_machine_need_no_proxy(self):
        hub, proxy = self.world()
        hub.url, hub.storage_url = (f"http://{host}:{server.server_port}" for host, server in zip(("127.0.0.1", "localhost"), hub.servers))
        self.assert_all(self.pull(hub, http_proxy=proxy.url))
        self.assertEqual(proxy.requests, [])

    def test_passwords(self):
        hub, proxy = self.world(user="me@work:pass:w%rd secret")
        for user, word in (("", "asks for a user and a password: set http_proxy to"), ("me:secret@", "does not accept the user and the password")):
            with self.subTest(user):
                before = len(proxy.requests)
                self.assert_refused(self.pull(hub, http_proxy=f"http://{user}{proxy.address}"), f"proxy {proxy.url} (http_proxy) answers 407",
                                    word, code=1)
                self.assertEqual(len(proxy.requests), before + 1, "it does not help to ask again")
        self.assert_all(self.pull(hub, http_proxy=f"http://me%40work:pass:w%25rd%20secret@{proxy.address}"))
        self.assertFalse(any("proxy-authorization" in name.lower() for _, _, fields in hub.requests for name in fields))

    def test_answers_of_the_proxy_are_told_as_its_own(self):
        hub, proxy = self.world()
        proxy.faults = [502] * 9
        self.assert_refused(self.pull(hub, "--retries", "1", http_proxy=proxy.url), f"answers 502 (through the proxy {proxy.url} (http_proxy))",
                            code=1)
        for fault, text in ((403, "accept the licence"), ("cut", "ended before the response was complete"), ("garbage", "expected a response of HTTP/1.1"),
                            ("endless head", "longer than 65536 bytes"), ("stall", "no response within 1 s")):
            with self.subTest(fault):
                proxy.faults = [fault]
                done = self.pull(hub, "--retries", "0", "--timeout", "1", http_proxy=f"http://me:secret@{proxy.address}")
                self.assert_refused(done, text, f"through the proxy {proxy.url} (http_proxy)")
        proxy.faults = [502, "cut", "garbage"]
        self.assert_all(self.pull(hub, "--retries", "5", http_proxy=proxy.url))


class Tunnel(ProxyCase):
    def test_the_proxy_sees_names_only(self):
        for user in (None, "me:secret"):
            with self.subTest(user):
                self.setUp()
                hub, proxy = self.world(tls=True, user=user)
                self.assert_all(self.pull(hub, https_proxy=f"http://{user}@{proxy.address}" if user else proxy.address, HF_TOKEN=TOKEN))
                self.assertEqual(len(proxy.requests), len(proxy.asked("CONNECT")))
                self.assertEqual({target for target, _ in proxy.asked("CONNECT")}, {"hub.test:443", "storage.test:443"})
                for target, fields in proxy.asked("CONNECT"):
                    self.assertEqual(set(fields), {"host"} | ({"proxy-authorization"} if user else set()))
                    self.assertEqual(fields["host"], target)
                self.assertEqual({headers.get("Authorization") for headers in hub.asked("hub")}, {f"Bearer {TOKEN}"})
                self.assertEqual({headers.get("Authorization") for headers in hub.asked("storage")}, {None})
                self.assertGreater(len(hub.asked("storage")), 0)

    def test_a_proxy_that_speaks_tls(self):
        for tls in (True, False):
            with self.subTest(tls):
                self.setUp()
                hub, proxy = self.world(tls=tls)
                secure = self.proxy(proxy.hosts, user="me:secret", tls=self.tls)
                variable = {"https_proxy" if tls else "http_proxy": f"https://me:secret@{secure.address}"}
                self.assert_all(self.pull(hub, **variable))
                self.assertGreater(len(secure.asked("CONNECT" if tls else "GET")), 1)
                self.setUp()
                variable = {name: value.replace("127.0.0.1", "localhost") for name, value in variable.items()}
                self.assert_refused(self.pull(hub, **variable), "no secure connection to the proxy https://localhost",
                                    "the certificate is for another host")

    def test_passwords(self):
        hub, proxy = self.world(tls=True, user="me:secret")
        self.assert_refused(self.pull(hub, HTTPS_PROXY=proxy.url), f"proxy {proxy.url} (HTTPS_PROXY) answers 407", "asks for a user", code=1)
        self.assert_refused(self.pull(hub, https_proxy=f"http://me:wrong@{proxy.address}"), "does not accept the user", code=1)
        self.assertEqual(len(proxy.requests), 2, "it does not help to ask again")
        self.assertEqual(hub.requests, [])

    def test_proxies_that_fail(self):
        hub, proxy = self.world(tls=True)
        for fault, *texts in ((403, "answers 403 instead of a connection to hub.test:443", "no_proxy"), (502, "answers 502"),
                              ("cut", "ends the connection before it answers"), ("garbage", "expected a response of HTTP/1.1"),
                              ("endless head", "longer than 65536 bytes"), ("more", "sends more than its answer"),
                              ("stall", "no connection within 1 s; missing: the answer")):
            with self.subTest(fault):
                proxy.faults = [fault] * 9
                done = self.pull(hub, "--retries", "0", "--timeout", "1", https_proxy=f"http://me:secret@{proxy.address}")
                self.assert_refused(done, f"proxy {proxy.url} (https_proxy)", *texts, code=1)
        self.assertEqual(hub.requests, [])
        proxy.faults = ["cut", "garbage", "endless head", "more"]
        self.assert_all(self.pull(hub, "--retries", "5", "--connections", "1", https_proxy=proxy.url))

    def test_proxies_that_are_none(self):
        hub, _ = self.world(tls=True)
        for value, word in (("socks5h://me:secret@127.0.0.1:1", "socks5h://, which Latte does not speak"), ("ftp://127.0.0.1:1", "neither http"),
                            ("http://me:secret@127.0.0.1:0", "cannot be read"), ("http://me:secret", "cannot be read")):
            with self.subTest(value):
                self.assert_refused(self.pull(hub, https_proxy=value), "https_proxy: expected an HTTP proxy", word, code=2)
        self.assert_refused(self.pull(hub, https_proxy="http://127.0.0.1:1"), "no connection to the proxy http://127.0.0.1:1 (https_proxy)",
                            "127.0.0.1:1: Connection refused", code=1)
        self.assert_refused(self.pull(hub, https_proxy="http://no.such.proxy.invalid"), "no address for 'no.such.proxy.invalid', the proxy", code=1)


class Certificates(ProxyCase):
    def test_the_sources_of_authorities(self):
        hub, proxy = self.world(tls=True)
        folder = self.home / "certificates"
        folder.mkdir()
        name = subprocess.run(["openssl", "x509", "-hash", "-noout", "-in", self.certificate], check=True, capture_output=True, text=True).stdout
        (folder / f"{name.strip()}.0").write_bytes(pathlib.Path(self.certificate).read_bytes())
        for more in ({"SSL_CERT_FILE": self.certificate, "CURL_CA_BUNDLE": "/none"}, {"CURL_CA_BUNDLE": self.certificate},
                     {"SSL_CERT_DIR": str(folder)}):
            with self.subTest(more):
                self.assert_all(self.pull(hub, https_proxy=proxy.url, **{"SSL_CERT_FILE": "", **more}))
        self.home.joinpath("empty").mkdir()
        self.setUp()
        self.assert_refused(self.pull(hub, https_proxy=proxy.url, SSL_CERT_FILE="", SSL_CERT_DIR=str(self.home / "empty")),
                            "https://hub.test: no secure connection: self-signed certificate", "SSL_CERT_FILE", code=1)
        for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE"):
            (self.home / "text").write_text("no certificate")
            for path in ("/no/such/file", str(self.home / "text")):
                self.assert_refused(self.pull(hub, https_proxy=proxy.url, **{"SSL_CERT_FILE": "", name: path}), f"{name}: {path}: expected a PEM",
                                    code=2)

    @unittest.skipIf(os.geteuid() != 0 or os.path.exists("/etc/pki"), "hides folders of a system like Debian: run as root")
    def test_a_system_that_openssl_was_not_built_for(self):
        """Its own folder is empty, and the file of other systems is found; without it, the pull says so."""
        hub, proxy = self.world(tls=True)
        own = subprocess.run(["openssl", "version", "-d"], check=True, capture_output=True, text=True).stdout.split('"')[1]
        # A copy of /etc that only this process sees, so that it may have folders of Red Hat.
        hide = (f'mount -t tmpfs none {own} && mkdir {own}/upper {own}/work && '
                f'mount -t overlay none -o lowerdir=/etc,upperdir={own}/upper,workdir={own}/work /etc && rm -rf /etc/ssl && ')
        places = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"]
        for place, texts in (*((place, []) for place in places), ("/etc/ssl/elsewhere", ["no certificates of authorities in",
                             "install ca-certificates, or name a PEM file with SSL_CERT_FILE"])):
            with self.subTest(place):
                self.setUp()
                copy = hide + f'mkdir -p {pathlib.Path(place).parent} && cp "$CERTIFICATE" {place} && exec "{pull_test.LATTE}" pull org/model'
                done = subprocess.run(["unshare", "-m", "sh", "-c", copy], text=True, capture_output=True, timeout=60, env=self.environment(
                    hub, NO_PROXY="", https_proxy=proxy.url, CERTIFICATE=self.certificate, SSL_CERT_FILE="", SSL_CERT_DIR="", CURL_CA_BUNDLE=""))
                if "unshare:" in done.stderr or "mount:" in done.stderr:
                    self.skipTest(done.stderr)
                self.assert_refused(done, *texts) if texts else self.assert_all(done)

    def test_a_certificate_of_another_host(self):
        hub, proxy = self.world(tls=True)
        proxy.hosts["other.test:443"] = proxy.hosts["hub.test:443"]
        hub.url = "https://other.test"
        self.assert_refused(self.pull(hub, https_proxy=proxy.url), "no secure connection: the certificate is for another host", code=1)
        self.assertEqual(hub.requests, [])


class Models(http.server.BaseHTTPRequestHandler):
    """A server with the OpenAI API that does not stream."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer({"data": [{"id": "m"}]})

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}]})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Chat(ProxyCase):
    def chat(self, url, **more):
        environment = self.environment(self.hub(SMALL), NO_PROXY="", **more)
        return subprocess.run([pull_test.LATTE, "chat", "--url", url, "--api-key", "secret"], input="Hi\n", text=True, capture_output=True,
                              timeout=60, env=environment)

    def test_an_https_server_is_reached_through_https_proxy(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Models)
        server.socket = self.tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        proxy = self.proxy({"chat.test:8443": server.server_port})
        done = self.chat("https://chat.test:8443/v1", https_proxy=proxy.url, SSL_CERT_FILE=self.certificate)
        self.assertEqual((done.returncode, done.stdout), (0, "Hello\n"), done.stderr)
        self.assertEqual({target for target, _ in proxy.asked("CONNECT")}, {"chat.test:8443"})
        done = self.chat("https://chat.test:8443/v1", https_proxy=proxy.url, no_proxy="chat.test", SSL_CERT_FILE=self.certificate)
        self.assertIn("no address for 'chat.test'", done.stderr)
        proxy.faults = [403]
        done = self.chat("https://chat.test:8443/v1", https_proxy=proxy.url, SSL_CERT_FILE=self.certificate)
        self.assertIn("answers 403 instead of a connection to chat.test:8443", done.stderr)

    def test_an_http_server_is_reached_directly(self):
        done = self.chat("http://chat.test:8000", http_proxy="http://127.0.0.1:1", all_proxy="http://127.0.0.1:1")
        self.assertIn("no address for 'chat.test'", done.stderr)


if __name__ == "__main__":
    pull_test.LATTE = sys.argv.pop(1)
    unittest.main()
