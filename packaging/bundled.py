"""The libraries that a wheel or a tarball brings along, where they come from, and the list of all parts as an SBOM (CycloneDX).

For Debian and its kin: dpkg knows the package, version and licence of each library. Standard library only.
"""
import functools
import hashlib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Every system has these, in a version that its other programs need too; they are never brought along.
OF_THE_SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s|ld-linux-x86-64)\.so")
# The packages of headers that are compiled in, by their names in THIRD_PARTY.md.
HEADERS = {"Boost": "libboost1.*-dev", "nlohmann-json": "nlohmann-json3-dev", "tl-expected": "libexpected-dev",
           "toml++": "libtomlplusplus-dev"}
# The packages of scripts that the web page has, if they were installed when it was built (cmake/web_libraries.cmake).
SCRIPTS = {"marked": "libjs-marked", "Prism": "node-prismjs", "KaTeX": "libjs-katex"}
XGRAMMAR = ROOT / "build/xgrammar"


def output(*command):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True)
    return done.stdout if done.returncode == 0 else ""


def libraries_of(*programs):
    """{name: path} of the libraries that programs load, directly or not, without the system's."""
    out = {}
    for program in programs:
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", output("ldd", program), re.M):
            if not OF_THE_SYSTEM.match(name) and not name.startswith("liblatte"):
                out[name] = pathlib.Path(path)
    return dict(sorted(out.items()))


@functools.cache
def package_of(path):
    """(package, version) of a library of this system; ("", "") if dpkg does not know it."""
    real = path.resolve()
    for name in {str(path), str(real), str(real).removeprefix("/usr"), f"/usr{real}"}:
        package = output("dpkg-query", "-S", name).partition(":")[0]
        if package:
            return package, output("dpkg-query", "-W", "-f", "${Version}\n", package).splitlines()[0]
    return "", ""


def original_of(grafted):
    """The library of this system that auditwheel has copied as "libfmt-4f700944.so.9.1.0"."""
    name = re.sub(r"-[0-9a-f]{8}\.so", ".so", grafted)
    folders = ("/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib")
    return next((pathlib.Path(folder) / name for folder in folders if (pathlib.Path(folder) / name).exists()), pathlib.Path(name))


def licence_text(package):
    path = pathlib.Path("/usr/share/doc") / package / "copyright"
    return path.read_bytes() if path.is_file() else b""


def licences():
    """{library: SPDX expression} by THIRD_PARTY.md."""
    table = (ROOT / "THIRD_PARTY.md").read_text().partition("## Libraries")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line.startswith("| [")]
    return {re.match(r"\[([^\]]+)", row[1])[1].strip("{}").lower(): row[2] for row in rows}


def licence_of(library):
    """The licence of "libfmt.so.9"; empty if THIRD_PARTY.md has no row that fits."""
    name = re.sub(r"^lib|[-.]?\d*\.so.*$", "", library)
    alias = {"crypto": "openssl", "ssl": "openssl", "tinfo": "ncurses", "pcre2-8": "pcre2", "pcre2": "pcre2", "prometheus-cpp-core": "prometheus-cpp"}
    known = licences()
    return known.get(alias.get(name, name)) or known.get(f"lib{name}", "")


def licensed(name, path):
    """(package, version, SPDX expression, text) of a library that is brought along as `name`. Ends the program if there is no licence."""
    package, version = package_of(path)
    text, expression = licence_text(package), licence_of(path.name)
    if not text or not expression:
        sys.exit(f"{name}: expected a row in THIRD_PARTY.md for {path.name}, and its licence in /usr/share/doc/{package or 'PACKAGE'}/copyright: "
                 "this needs Debian or its kin")
    return package, version, expression, text


def component(name, version, licence, kind="library", **more):
    out = {"type": kind, "name": name, "version": version, **more}
    if licence:
        out["licenses"] = [{"expression": licence}]
    return out


def compiled_in():
    """The components that are part of the program and of liblatte."""
    known = licences()
    out = []
    for name, pattern in {**HEADERS, **SCRIPTS}.items():
        versions = sorted(set(output("dpkg-query", "-W", "-f", "${Version}\n", pattern).split()))
        if versions or name in HEADERS:
            out.append(component(name, versions[-1] if versions else "", known.get(name.lower(), "")))
    if (XGRAMMAR / "installed").is_file():
        out.append(component("XGrammar", (XGRAMMAR / "installed").read_text().split()[0], known["xgrammar"]))
    return out


def bill(version, libraries):
    """CycloneDX 1.6 of a package with these libraries: {name in the package: path on this system}. Has no time and no random number."""
    parts = compiled_in()
    for name, path in libraries.items():
        package, release = package_of(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        parts.append(component(re.sub(r"\.so.*", "", path.name), release, licence_of(path.name), purl=f"pkg:deb/debian/{package}@{release}",
                               hashes=[{"alg": "SHA-256", "content": digest}], properties=[{"name": "latte:file", "value": name}]))
    return json.dumps({"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
                       "metadata": {"component": component("latte", version, "Apache-2.0", "application")},
                       "components": parts}, indent=1) + "\n"


def symbol_floor(paths):
    """{"GLIBC": ("2.34", [symbols]), …}: the highest version of each kind that the files need, and what needs it."""
    found = {}
    for path in paths:
        for name, kind, version in re.findall(r" UND (\S+?)@(GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)", output("readelf", "-W", "--dyn-syms", path)):
            found.setdefault(kind, {}).setdefault(tuple(map(int, version.split("."))), set()).add((name, pathlib.Path(path).name))
    return {kind: (".".join(map(str, max(by))), sorted(by[max(by)])) for kind, by in sorted(found.items())}
