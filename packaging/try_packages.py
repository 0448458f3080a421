#!/usr/bin/env python3
"""Installs packages of Latte in clean roots of Debian and uses them there. For Linux with mmdebstrap, as root.

Usage: try_packages.py WORK [--suite bookworm] [--wheel FILE] [--debs FOLDER] [--tarball FILE] [--setup FILE]
WORK gets a root without compiler and curl (300 MB), which is kept for the next time, and a copy of it for each package. --setup FILE is copied
to etc/apt/apt.conf.d of the root, for a proxy. Prints what was shown and the seconds from installation to the first word.
"""
import argparse
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

OLDER = "0.0.1-1"
PROGRAM = "/packages/latte_*.deb /packages/liblatte0*.deb"
STORY = "Once upon a time, a brave duck named Wendy"
SCHEMA = '{"enum": ["tea", "milk"]}'
# Runs in the root with Python alone: a server, a request, an answer by schema, signals.
SERVE = f"""
import json, os, signal, subprocess, time, urllib.request
server = subprocess.Popen([LATTE, "serve", "tiny", "--port", "8471", *FLAGS], stderr=open("/tmp/serve.log", "w"))
def post(path, body):
    request = urllib.request.Request("http://127.0.0.1:8471" + path, json.dumps(body).encode(), {{"Content-Type": "application/json"}})
    return json.load(urllib.request.urlopen(request, timeout=60))
for _ in range(300):
    try:
        urllib.request.urlopen("http://127.0.0.1:8471/ready", timeout=5); break
    except OSError:
        time.sleep(0.1)
program = os.readlink(f"/proc/{{server.pid}}/exe")
assert program.endswith("/bin/latte"), program
text = post("/v1/completions", {{"model": "tiny", "prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}})["choices"][0]["text"]
assert len(text.split()) > 5, text
answer = post("/v1/completions", {{"model": "tiny", "prompt": "x", "max_tokens": 60, "guided_json": {SCHEMA}}})
answer = answer["choices"][0]["text"]
assert json.loads(answer) in ("tea", "milk"), answer
server.send_signal(signal.SIGTERM)
assert server.wait(60) in (0, -15), server.returncode
assert subprocess.run([LATTE, "no-such-command"], stderr=subprocess.DEVNULL).returncode == 2
print("server:", text.strip()[:60], "| by schema:", answer.strip())
"""
PYTHON = """
import latte_mla
with latte_mla.LLM("tiny") as llm:
    print(llm.generate("Once upon a time, a brave", latte_mla.SamplingParams(temperature=0, max_tokens=40)).text)
"""
# A system of another family: OpenSSL's own folder of Debian is not there, the certificates are where Red Hat has them.
TLS = """
set -e
for place in /etc/ssl /usr/lib/ssl /usr/share/ca-certificates; do [ ! -e $place ] || mv $place $place.away; done
mkdir -p /etc/pki/tls/certs
LATTE serve tiny --port 8472 --ssl-certfile /tls/tls.crt --ssl-keyfile /tls/tls.key 2>/dev/null & server=$!
ask() { LATTE bench serve --url https://localhost:8472/v1 --model tiny --requests 1 --output-tokens 4 2>&1 || true; }
sleep 4
ask | grep -i "certificate" || { echo "expected a refusal without certificates"; exit 1; }
cp /tls/tls.crt /etc/pki/tls/certs/ca-bundle.crt
ask >/tmp/asked; grep -qi "requests" /tmp/asked || { cat /tmp/asked; exit 1; }
kill $server
for place in /etc/ssl /usr/lib/ssl /usr/share/ca-certificates; do [ ! -e $place.away ] || mv $place.away $place; done
echo "TLS: certificates of a Red Hat-like root are found"
"""


class Root:
    """A root file system; `suite` of Debian, with Python and nothing that builds or downloads."""

    def __init__(self, folder):
        self.folder = folder

    @classmethod
    def make(cls, folder, suite, setup):
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(["mmdebstrap", "--variant=minbase", "--quiet", "--include=python3-venv", suite, str(folder)], check=True)
            if setup:
                shutil.copy(setup, folder / "etc/apt/apt.conf.d")
            (folder / "made").touch()
        return cls(folder)

    def copy(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", self.folder, folder], check=True)
        shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
        return Root(folder)

    def put(self, source, target):
        path = self.folder / target.lstrip("/")
        path.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, path)

    def run(self, command, status=0):
        """Runs a shell command. Its output, with errors."""
        words = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "TERM=dumb",
                 "DEBIAN_FRONTEND=noninteractive", "sh", "-c", command]
        mount = "mount -t proc proc proc && (mount -t devtmpfs dev dev 2>/dev/null || mount --bind /dev dev) && "
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", f"cd {self.folder} && {mount}{shlex.join(['chroot', '.', *words])}"],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != status:
            raise SystemExit(f"{command[:300]}: expected exit {status}, found {done.returncode}\n{done.stdout[-4000:]}")
        return done.stdout

    def python(self, program, latte, flags=()):
        return self.run(f"python3 -c {shlex.quote(f'LATTE={latte!r}; FLAGS={list(flags)!r}' + program)}")


def check(condition, text):
    if not condition:
        raise SystemExit(f"not so: {text}")
    print(f"  {text}", flush=True)


def use(root, latte, version):
    """What every package must do."""
    said = root.run(f"{latte} --version")
    check(said.startswith(f"latte {version}"), said.splitlines()[0])
    check("constrained answers: xgrammar" in said, said.splitlines()[-1])
    check(STORY in root.run(f"{latte} run tiny -p 'Once upon a time' --seed 0"), "latte run tiny writes the story")
    print("  " + root.python(SERVE, latte).strip(), flush=True)


def from_install_to_word(root, install, latte):
    """Installs, and prints the seconds until the first word."""
    start = time.monotonic()
    root.run(install)
    installed = time.monotonic()
    root.run(f"{latte} run tiny -p 'Once upon a time' --seed 0 -n 1")
    print(f"  seconds: {installed - start:.1f} to install, {time.monotonic() - installed:.2f} to the first word", flush=True)


def without_tools(root):
    for tool in ("cc", "c++", "gcc", "curl", "wget"):
        root.run(f"command -v {tool}", status=127)


def certificate(folder):
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
                    "subjectAltName=DNS:localhost", "-keyout", folder / "tls.key", "-out", folder / "tls.crt"], check=True, capture_output=True)


def try_wheel(root, wheel):
    print(wheel.name)
    version = wheel.name.split("-")[1]
    root.put(wheel, "/packages")
    root.run("python3 -m venv /opt/latte")
    latte = "/opt/latte/bin/latte"
    from_install_to_word(root, f"/opt/latte/bin/pip install --quiet --no-index /packages/{wheel.name}", latte)
    use(root, latte, version)
    with zipfile.ZipFile(wheel) as archive:
        if "latte_mla/__init__.py" in archive.namelist():
            text = root.run(f"/opt/latte/bin/python -c {shlex.quote(PYTHON)}").strip()
            check(len(text.split()) > 5, f"latte_mla in Python: {text[:60]}")
    check("/opt/latte/share/bash-completion/completions/latte" in root.run("find /opt/latte/share -type f"), "completions are installed")
    certificate(root.folder / "tls")
    print("  " + root.run(TLS.replace("LATTE", latte)).strip().splitlines()[-1])
    root.run("/opt/latte/bin/pip uninstall --quiet -y latte-mla")
    check(not root.run("find /opt/latte -type f -iname '*latte*'").strip(), "uninstalling leaves nothing")


def try_tarball(root, tarball):
    print(tarball.name)
    root.put(tarball, "/packages")
    latte = f"/opt/{tarball.name.removesuffix('.tar.gz')}/bin/latte"
    from_install_to_word(root, f"tar -xzf /packages/{tarball.name} -C /opt", latte)
    use(root, latte, tarball.name.split("-")[1])


def older(deb, folder):
    """Packs the same files as an older version, to upgrade from."""
    version = deb.name.split("_")[1]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["dpkg-deb", "-R", deb, f"{scratch}/tree"], check=True)
        control = pathlib.Path(scratch, "tree/DEBIAN/control")
        control.write_text(control.read_text().replace(version, OLDER))
        subprocess.run(["dpkg-deb", "-Zgzip", "-z1", "-b", f"{scratch}/tree", folder / deb.name], check=True, stdout=subprocess.DEVNULL)


def try_debs(root, folder):
    debs = sorted(folder.glob("*.deb"))
    print(" ".join(deb.name for deb in debs))
    (root.folder / "older").mkdir()
    for deb in debs:
        root.put(deb, "/packages")
        older(deb, root.folder / "older")
    version = next(deb.name.split("_")[1] for deb in debs)
    root.run("apt-get update -qq")
    from_install_to_word(root, f"apt-get install -y -qq --no-install-recommends {PROGRAM.replace('/packages', '/older')}", "latte")
    check(root.run("dpkg-query -W -f '${Version}' latte") == OLDER, f"version {OLDER} is installed")
    root.run("echo '# mine' >>/etc/latte/latte.toml")
    start = time.monotonic()
    root.run(f"apt-get install -y -qq -o Dpkg::Options::=--force-confold {PROGRAM}")
    check("# mine" in root.run("cat /etc/latte/latte.toml"), f"an upgrade keeps the configuration ({time.monotonic() - start:.1f} s)")
    use(root, "latte", version.split("-")[0])
    names = root.run("dpkg -L latte").split()
    for name in ("/usr/bin/latte", "/etc/latte/latte.toml", "/usr/share/man/man1/latte.1.gz",
                 "/usr/share/bash-completion/completions/latte", "/usr/share/doc/latte/copyright"):
        check(name in names, name)
    check([name for name in names if name.endswith("lib/systemd/system/latte.service")], "the service is installed")
    check("tiny" in root.run("latte serve --config /etc/latte/latte.toml --dry-run --print-config"), "the service's configuration is accepted")
    root.run("apt-get remove -y -qq latte")
    check("# mine" in root.run("cat /etc/latte/latte.toml"), "removing keeps the configuration")
    root.run("apt-get purge -y -qq latte 'liblatte0.*'")
    left = root.run("find / -xdev ( -path /packages -o -path /older -o -path /proc -o -path /var/cache ) -prune -o -iname '*latte*' -print".replace("(", r"\(").replace(")", r"\)"))
    check(not left.strip(), "purging leaves nothing" + (f": {left}" if left.strip() else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--setup")
    for kind in ("wheel", "debs", "tarball"):
        parser.add_argument(f"--{kind}", type=pathlib.Path)
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    clean = Root.make(work / options.suite, options.suite, options.setup)
    without_tools(clean)
    for kind, attempt in (("wheel", try_wheel), ("debs", try_debs), ("tarball", try_tarball)):
        package = getattr(options, kind)
        if package:
            attempt(clean.copy(work / f"{options.suite}-{kind}"), package.resolve())
    print("the packages work")


if __name__ == "__main__":
    sys.exit(main())
