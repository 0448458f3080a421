#!/usr/bin/env python3
"""packaging/health.sh finds the server of a container on any port, with and without TLS. Each server is alone in a network of its own,
as in a container. Usage: health_test.py LATTE SOURCE; needs Linux, curl, ip, openssl, and the right to make a network (else skipped)."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ISOLATED = ["unshare", "--user", "--map-root-user", "--net"]


def check(condition, text):
    if not condition:
        raise SystemExit(f"health_test: {text}")


def healthy(script):
    return subprocess.run([script], timeout=120, check=False).returncode == 0


def inside(latte, script, flags):
    """Runs in the network of its own: the state before, while and after a server runs there."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    check(not healthy(script), "healthy without a server")
    server = subprocess.Popen([latte, "serve", "tiny", *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while not healthy(script):
            check(server.poll() is None, f"the server has ended: {flags}")
            check(time.monotonic() < end, f"never healthy: {flags}")
            time.sleep(0.2)
    finally:
        server.kill()
        server.wait(60)
    check(not healthy(script), f"healthy after the end: {flags}")


def main():
    latte, source = sys.argv[1], pathlib.Path(sys.argv[2])
    script = str(source / "packaging" / "health.sh")
    if sys.argv[3:]:
        return inside(latte, script, sys.argv[3:])
    for tool in ("curl", "ip", "openssl", "unshare"):
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed")
            return None
    if subprocess.run([*ISOLATED, "ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode != 0:
        print("skipped: no right to make a network")
        return None
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
                        "-subj", "/CN=server.example"], check=True, capture_output=True)
        tls = ["--ssl-certfile", certificate, "--ssl-keyfile", key]
        for flags in (["--host", "0.0.0.0"], ["--port", "9000", "--api-key", "k"], ["--host", "0.0.0.0", "--port", "8443", *tls],
                      ["--host", "::", "--port", "81", "--allowed-host", "server.example"]):
            subprocess.run([*ISOLATED, sys.executable, __file__, latte, str(source), *flags], check=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
