"""The virtual environment of the acceptance tests, and what comes from the package registry."""
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))
import fetch_archive  # noqa: E402

LOCK = HERE / "constraints.txt"
# Packages that have no wheel. Their builds get the setuptools of the environment, whose hash is known, and nothing else.
BUILT = "rouge_score,sqlitedict,word2number"
UNREACHABLE = "registry unreachable"
# pip's messages when it cannot talk to the registry. "none": it has seen no version of a package, not only not this one.
NETWORK = re.compile(r"from versions: none|connection broken|NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError"
                     r"|Max retries exceeded|Network is unreachable|SSLError|There was a problem confirming the ssl"
                     r"|HTTP error 50\d|50\d Server Error")


class SetUpFailed(Exception):
    """A message for the user: why nothing can be tested."""


def digest(paths):
    out = hashlib.sha256(sys.version.encode())
    for path in paths:
        out.update(path.read_bytes())
    return out.hexdigest()


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(lock=LOCK, is_short=False):
    """{name: (version, [SHA-256])} of a list with hashes; the short part ends where its second headline is."""
    out, text = {}, lock.read_text(encoding="utf-8")
    if is_short:
        text = text.partition("# requirements-full.txt")[0]
    for entry in text.replace("\\\n", " ").splitlines():
        found = re.match(r"([\w.-]+)==(\S+)", entry)
        if found:
            out[normal(found[1])] = (found[2], re.findall(r"--hash=sha256:(\w+)", entry))
    return out


def with_hashes(lists, known):
    """The lines of the lists of requirements, and of all else that is `known`, each with its hashes."""
    lines, named = [], set()
    for path in lists:
        for line in path.read_text(encoding="utf-8").splitlines():
            name = re.match(r"[\w.-]+", line)
            if name:
                named.add(normal(name[0]))
                lines.append((line, known.get(normal(name[0]), ("", []))[1]))
    lines += [(f"{name}=={version}", hashes) for name, (version, hashes) in known.items() if name not in named]
    return "".join(line + "".join(f" --hash=sha256:{value}" for value in hashes) + "\n" for line, hashes in lines)


class Environment:
    def __init__(self, folder, is_short):
        self.folder, self.is_short = folder, is_short
        self.python = folder / "venv/bin/python"
        self.lists = [HERE / "requirements.txt"] + ([] if is_short else [HERE / "requirements-full.txt"])

    def pip(self, *arguments):
        """Runs pip. Raises SetUpFailed with UNREACHABLE, or with what pip said."""
        done = subprocess.run([self.python, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            said = done.stdout.strip()
            raise SetUpFailed(UNREACHABLE if NETWORK.search(said) else "pip failed:\n" + said[-2000:])

    def create(self):
        """Creates what is missing. A second call with the same lists needs no registry."""
        stamp, wanted = self.folder / "venv/installed", digest([*self.lists, LOCK])
        # One environment serves both runs.
        if stamp.exists() and wanted in stamp.read_text().split():
            return
        if not self.python.exists():
            venv.create(self.folder / "venv", with_pip=True, clear=True)
        known = locked(is_short=self.is_short)
        if not self.is_short:
            self.install([HERE / "requirements-build.txt"], {name: known[name] for name in ("setuptools",)})
        self.install(self.lists, known)
        with open(stamp, "a", encoding="utf-8") as file:
            file.write(wanted + "\n")

    def install(self, lists, known):
        """Installs what the lists name and `known` has. No code of a file runs whose hash is not there."""
        wanted = self.folder / "wanted.txt"
        wanted.write_text(with_hashes(lists, known), encoding="utf-8")
        self.pip("install", "-q", "--require-hashes", "--only-binary", ":all:", "--no-binary", BUILT, "--no-build-isolation",
                 "-r", str(wanted))

    def source_distribution(self, name):
        """The folder of the source distribution of the version of `name` that the environment has."""
        version, hashes = locked()[normal(name)]
        target = self.folder / f"{name}-{version}"
        if not target.exists():
            try:
                path = fetch_archive.fetch(name, version, hashes, self.folder)
            except fetch_archive.FetchFailed as error:
                raise SetUpFailed(str(error)) from error
            with tarfile.open(path) as archive:
                archive.extractall(self.folder, filter="data")
        return target

    def output(self, *arguments):
        return subprocess.run([self.python, *arguments], text=True, capture_output=True, check=True).stdout

    def run(self, arguments, log, cwd=None, timeout=3600, **variables):
        """Runs a command of the environment; its output goes to the file `log`. Returns the exit status."""
        path = f"{self.python.parent}{os.pathsep}{os.environ['PATH']}"
        with open(log, "w", encoding="utf-8") as file:
            return subprocess.run([str(a) for a in arguments], cwd=cwd, stdout=file, stderr=subprocess.STDOUT, check=False,
                                  timeout=timeout, env=os.environ | {"PATH": path, "NO_PROXY": "127.0.0.1"} | variables).returncode
