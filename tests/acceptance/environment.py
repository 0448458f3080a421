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


class Environment:
    def __init__(self, folder, is_short):
        self.folder = folder
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
        stamp, wanted = self.folder / "venv/installed", digest([*self.lists, HERE / "constraints.txt"])
        # One environment serves both runs.
        if stamp.exists() and wanted in stamp.read_text().split():
            return
        if not self.python.exists():
            venv.create(self.folder / "venv", with_pip=True, clear=True)
        files = [part for path in self.lists for part in ("-r", str(path))]
        self.pip("install", "-q", *files, "-c", str(HERE / "constraints.txt"))
        with open(stamp, "a", encoding="utf-8") as file:
            file.write(wanted + "\n")

    def source_distribution(self, name):
        """The folder of the source distribution of the version of `name` that the environment has."""
        version = self.output("-c", f"import importlib.metadata as m; print(m.version({name!r}))").strip()
        target = self.folder / f"{name}-{version}"
        if not target.exists():
            self.pip("download", "-q", "--no-deps", "--no-binary", name, "-d", str(self.folder),
                     f"{name}=={version}")
            with tarfile.open(self.folder / f"{name}-{version}.tar.gz") as archive:
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
