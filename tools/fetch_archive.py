#!/usr/bin/env python3
"""Fetches the source archive of a Python package from the package index, without running anything of it.
Usage: fetch_archive.py NAME VERSION SHA256[,SHA256…] FOLDER; prints the path of the archive, FOLDER/NAME-VERSION.tar.gz.

`pip download` of a source archive runs the archive's build back end to learn its requirements, before anybody has
compared its hash. Here the bytes are compared first; an archive with another hash is removed. The index is pip's:
PIP_INDEX_URL, index-url of pip's configuration, or pip's own default; PIP_CERT and the proxies of the environment count. Needs only
Python's standard library.
"""
import base64
import configparser
import hashlib
import html.parser
import json
import os
import pathlib
import re
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request

WHEELS = ("/usr/share/python-wheels", str(pathlib.Path(os.__file__).parent / "ensurepip/_bundled"))  # where pip lies if it is not installed
MOST_BYTES = 512 << 20  # of an archive or an index page
SECONDS = 60            # of silence


class FetchFailed(Exception):
    """A message for the user."""


def configured(key):
    """A setting as pip reads it: the environment, then the user's file, then the system's."""
    value = os.environ.get("PIP_" + key.upper().replace("-", "_"))
    if value:
        return value
    home = pathlib.Path.home()
    places = [os.environ.get("PIP_CONFIG_FILE", ""), pathlib.Path(os.environ.get("VIRTUAL_ENV", "/nowhere")) / "pip.conf",
              pathlib.Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "pip/pip.conf", home / ".pip/pip.conf",
              "/etc/xdg/pip/pip.conf", "/etc/pip.conf"]
    for place in places:
        parser = configparser.RawConfigParser()
        try:
            parser.read(place or os.devnull, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in ("download", "global"):
            if parser.get(section, key, fallback=""):
                return parser.get(section, key)
    return ""


def default_index():
    """The index that pip takes when none is configured."""
    for folder in WHEELS:
        sys.path += map(str, sorted(pathlib.Path(folder).glob("pip-*.whl")))
    try:
        from pip._internal.models.index import PyPI
    except ImportError:
        raise FetchFailed("no package index is configured, and pip, which knows the usual one, is missing: set PIP_INDEX_URL, "
                          "or install python3-venv") from None
    return PyPI.simple_url


class Links(html.parser.HTMLParser):
    """The addresses in an index page of HTML."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def request_for(url, accept):
    """The name and password of an address go into a header, as pip sends them."""
    parts = urllib.parse.urlsplit(url)
    plain = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    request = urllib.request.Request(plain, headers={"Accept": accept, "User-Agent": "latte-build"})
    if parts.username:
        secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        request.add_unredirected_header("Authorization", "Basic " + base64.b64encode(secret.encode()).decode())
    return request


def opened(url, accept="*/*"):
    """The answer for an address. Raises FetchFailed."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("https", "http", "file"):
        raise FetchFailed(f"{url}: expected an address with https, http or file")
    if parts.scheme == "file" and os.path.isdir(urllib.request.url2pathname(parts.path)):
        url = url.rstrip("/") + "/index.html"
    certificates = configured("cert")
    try:
        context = ssl.create_default_context(cafile=certificates or None)
        return urllib.request.urlopen(request_for(url, accept), timeout=SECONDS, context=context)
    except (OSError, ValueError) as error:  # URLError is one
        raise FetchFailed(f"{re.sub('//[^/]*@', '//', url)}: {getattr(error, 'reason', error)}") from error


def index_page(name):
    """[(file name, address)] of a package."""
    index = configured("index-url") or default_index()
    folder = index.rstrip("/") + "/" + re.sub(r"[-_.]+", "-", name).lower() + "/"
    with opened(folder, "application/vnd.pypi.simple.v1+json, text/html;q=0.5") as answer:
        text = answer.read(MOST_BYTES).decode()
        kind = answer.headers.get("Content-Type", "")
    try:
        addresses = [file["url"] for file in json.loads(text)["files"]] if "json" in kind else Links(text).found
    except (ValueError, KeyError, TypeError) as error:
        raise FetchFailed(f"{folder}: expected a page of a package index") from error
    addresses = [urllib.parse.urljoin(folder, address) for address in addresses]
    return [(urllib.parse.unquote(urllib.parse.urlsplit(address).path.rpartition("/")[2]), address) for address in addresses]


def is_source(file, name, version):
    """Whether a file name is that of the source archive."""
    same = re.sub(r"[-_.]+", "-", file.lower()) == re.sub(r"[-_.]+", "-", f"{name}-{version}.tar.gz".lower())
    return same and file.endswith(".tar.gz")


def fetch(name, version, hashes, folder):
    """The path of the archive, whose SHA-256 is one of `hashes`. Raises FetchFailed."""
    target = pathlib.Path(folder) / f"{name}-{version}.tar.gz"
    address = next((address for file, address in index_page(name) if is_source(file, name, version)), None)
    if address is None:
        raise FetchFailed(f"{name} {version}: the package index has no source archive of it")
    digest, size, partial = hashlib.sha256(), 0, target.with_suffix(".part")
    try:
        with opened(address) as answer, open(partial, "wb") as file:
            while block := answer.read(1 << 20):
                digest.update(block)
                size += len(block)
                if size > MOST_BYTES:
                    raise FetchFailed(f"{target.name}: expected at most {MOST_BYTES} bytes, found more")
                file.write(block)
        if digest.hexdigest() not in hashes:
            raise FetchFailed(f"{target.name}: expected the SHA-256 {' or '.join(hashes)}, found {digest.hexdigest()}; "
                              "nothing of it was run, and it is removed")
        partial.replace(target)
    except OSError as error:
        raise FetchFailed(f"{target.name}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return target


def main(name, version, hashes, folder):
    try:
        print(fetch(name, version, hashes.split(","), folder))
    except FetchFailed as error:
        sys.exit(f"fetch_archive.py: {error}")


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
