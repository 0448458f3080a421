"""Fails if the documentation names what does not exist, a picture has no page, or docs/README.md lacks a page.

Checked: relative Markdown links; paths that start with a top-level folder, names of source files and of tests; `A::B` and
`--flag` (cpp_names.py, doc_flags.py); every line of the tree in ARCHITECTURE.md; every picture in docs/plots and
docs/figures; every page under docs/ in docs/README.md. Paths and names are also checked in the comments of headers.
CHANGELOG.md and bench/notebook tell the past: only their links and paths are checked.
"""
import pathlib
import re
import subprocess
import sys

import cpp_names
import doc_flags

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
SOURCE_FILE = re.compile(r"(?<![\w./*{}<>-])\w[\w.-]*\.(?:cc|h|py|sh|cmake)(?![\w/-])")
TEST = re.compile(r"(?<![\w/])\w+_test\b(?!\.)")
TREE_LINE = re.compile(r"^([│ ]*)[├└]── ([A-Za-z0-9_.{},/-]+)")


def tracked(root):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, text=True,
                         capture_output=True, check=True)
    return [line for line in out.stdout.splitlines() if (root / line).exists()]


def expand(path):
    """a/{b,c}.h -> a/b.h, a/c.h"""
    match = re.search(r"\{([^{}]*)\}", path)
    if not match:
        return [path]
    return [p for part in match[1].split(",") for p in expand(path[: match.start()] + part + path[match.end():])]


def link_errors(root, files):
    for name in (f for f in files if f.endswith(".md")):
        prose = re.sub(r"```.*?```", "", (root / name).read_text(), flags=re.S)
        for target in LINK.findall(prose):
            if "://" not in target and not target.startswith("mailto:") and not ((root / name).parent / target).exists():
                yield f"{name}: link to {target}, which does not exist"


def lines_of(root, name):
    """(line, text) of a document, or of the comments of a header."""
    text = (root / name).read_text()
    return enumerate(text.splitlines(), 1) if name.endswith(".md") else cpp_names.comments_of(text)


def path_errors(root, files):
    tops = {pathlib.Path(f).parts[0] for f in files if "/" in f} - {"build"}
    path_in_root = re.compile(rf"(?<![\w./$~{{}}<-])(?:{'|'.join(map(re.escape, sorted(tops)))})/[\w./{{}},-]*\w}}?(?![\w<*-])")
    for name in (f for f in files if f.endswith((".md", ".h"))):
        for number, line in lines_of(root, name):
            for path in (path for word in path_in_root.findall(line) for path in expand(word)):
                if not (root / path).exists():
                    yield f"{name}:{number}: names {path}, which does not exist"


def file_errors(root, files, documents):
    """Source files and tests that a document names without their folder. A test is a file, a target, or folder_file."""
    names = {pathlib.Path(f).name for f in files}
    stems = [f.rsplit(".", 1)[0].replace("/", "_") for f in files]
    build = {word for f in files if f.endswith(("CMakeLists.txt", ".cmake")) for word in TEST.findall((root / f).read_text())}
    for name in documents:
        for number, line in lines_of(root, name):
            for file in SOURCE_FILE.findall(line):
                if file not in names:
                    yield f"{name}:{number}: names {file}, and there is no such file"
            for test in TEST.findall(line):
                if test not in build and not any(f"_{stem}".endswith(f"_{test}") for stem in stems):
                    yield f"{name}:{number}: names {test}, and there is no such test"


def picture_errors(root, files):
    """A picture without a page is seen by nobody and grows old. The notebook shows the past, so it does not count."""
    pages = [f for f in files if f.endswith(".md") and not f.startswith("bench/notebook/")]
    shown = {(root / page).parent.joinpath(target).resolve() for page in pages
             for target in LINK.findall((root / page).read_text())}
    for name in (f for f in files if f.startswith(("docs/plots/", "docs/figures/"))):
        if (root / name).resolve() not in shown:
            yield f"{name}: no page shows it; link it or remove it"


def shelf_errors(root, files):
    """A page that the list of documents lacks is found by nobody."""
    shelves = "docs/README.md"
    text = (root / shelves).read_text() if (root / shelves).exists() else ""
    listed = {(root / "docs" / target).resolve() for target in LINK.findall(text)}
    for name in (f for f in files if f.startswith("docs/") and f.endswith(".md") and f != shelves):
        if (root / name).resolve() not in listed:
            yield f"{name}: {shelves} does not list it; add it to one of the four shelves"


def tree_errors(root):
    """The tree of ARCHITECTURE.md: one entry a line, indented by four columns a level."""
    text = (root / "ARCHITECTURE.md").read_text()
    block = re.search(r"```text\nlatte/\n(.*?)```", text, flags=re.S)
    if not block:
        yield "ARCHITECTURE.md: no tree (a ```text block that starts with latte/)"
        return
    stack, listed = [], set()
    for line in block[1].splitlines():
        match = TREE_LINE.match(line)
        if not match:
            continue
        depth = len(match[1]) // 4
        stack[depth:] = [match[2].rstrip("/")]
        path = "/".join(stack)
        for one in expand(path):
            listed.add(one)
            if not (root / one).exists():
                yield f"ARCHITECTURE.md: the tree has {one}, which does not exist"
    for folder in sorted(p for top in ("src", "lab") for p in (root / top).rglob("*") if p.is_dir() and any(p.iterdir())):
        name = str(folder.relative_to(root))
        if name not in listed:
            yield f"ARCHITECTURE.md: the tree lacks {name}/"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = tracked(root)
    documents = [f for f in files if f.endswith(".md") and f != "CHANGELOG.md" and not f.startswith("bench/notebook/")]
    checks = (link_errors, path_errors, picture_errors, shelf_errors)
    checks_of_documents = (file_errors, cpp_names.errors, doc_flags.errors)
    bad = [*(line for check in checks for line in check(root, files)),
           *(line for check in checks_of_documents for line in check(root, files, documents)), *tree_errors(root)]
    print("\n".join(bad) if bad else "every name, path and link leads somewhere, every picture has a page, every page a shelf")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
