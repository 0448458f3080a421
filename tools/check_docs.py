"""Fails if the documentation names a path that does not exist, a relative link leads nowhere, no page shows a picture, or
no shelf of docs/README.md lists a page.

Checked: relative Markdown links in every .md file; every path in backquotes that starts with a top-level folder of the
repository; every line of the tree in ARCHITECTURE.md; every picture in docs/plots and docs/figures;
every page under docs/ in docs/README.md.
"""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"`([^`\s]+)`")
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


def doc_errors(root, files):
    tops = {pathlib.Path(f).parts[0] for f in files if "/" in f} - {"build"}
    for name in (f for f in files if f.endswith(".md")):
        here = (root / name).parent
        text = (root / name).read_text()
        prose = re.sub(r"```.*?```", "", text, flags=re.S)
        for target in LINK.findall(prose):
            if "://" not in target and not target.startswith("mailto:") and not (here / target).exists():
                yield f"{name}: link to {target}, which does not exist"
        for word in CODE.findall(prose):
            if "/" in word and pathlib.Path(word).parts[0] in tops and re.fullmatch(r"[\w./{},-]+", word):
                for path in expand(word.rstrip("/.,")):
                    if not (root / path).exists():
                        yield f"{name}: names `{path}`, which does not exist"


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
    for folder in sorted(p for p in (root / "src").rglob("*") if p.is_dir() and any(p.iterdir())):
        name = str(folder.relative_to(root))
        if name not in listed:
            yield f"ARCHITECTURE.md: the tree lacks {name}/"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    files = tracked(root)
    bad = [*doc_errors(root, files), *picture_errors(root, files), *shelf_errors(root, files), *tree_errors(root)]
    print("\n".join(bad) if bad else "every path and link leads somewhere, every picture has a page, every page a shelf")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
