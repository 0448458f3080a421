"""Fails if a comment, a message or a document uses a word of tools/words.txt, and says what to write instead.

Checked: comments and string literals of C, C++, CMake, Python and shell files; the prose of .md files, without fenced
code and link targets. Lines of one paragraph are joined, so a pattern also matches across a line break.
"""
import bisect
import pathlib
import re
import subprocess
import sys
import tokenize

C_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
C_FILES = {".h", ".cc", ".c"}
HASH_FILES = {".sh", ".cmake"}


def read_rules(path):
    """The rules [(pattern, replacement, reason, folders)] and the folders that are skipped."""
    rules, skipped = [], ()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.split(" ")[0] in ("skip", "later"):
            skipped += tuple(line.split()[1:])
        elif line and not line.startswith("#"):
            fields = line.split("\t")
            if not 3 <= len(fields) <= 4:
                raise SystemExit(f"{path}:{number}: expected pattern, replacement, reason and perhaps folders, by tabs")
            rules.append((re.compile(fields[0]), fields[1], fields[2], tuple("".join(fields[3:]).split()) or ("",)))
    return rules, skipped


def c_pieces(text):
    """(line, kind, text) of each comment line and each string literal."""
    for match in C_TOKEN.finditer(text):
        token, line = match[0], text.count("\n", 0, match.start()) + 1
        if token.startswith(("//", "/*")):
            for more, part in enumerate(token.splitlines()):
                yield line + more, "comment", part.strip("/*< ")
        elif not token.startswith("'"):
            for more, part in enumerate(re.sub(r'\\n(?=")?', " ", token.strip('R"')).splitlines()):
                yield line + more, "string", part


def python_pieces(path):
    with open(path, "rb") as file:
        for token in tokenize.tokenize(file.readline):
            kind = {tokenize.COMMENT: "comment", tokenize.STRING: "string"}.get(token.type)
            kind = "comment" if kind and "\n" in token.string else kind  # a docstring
            for more, part in enumerate(token.string.splitlines() if kind else ()):
                yield token.start[0] + more, kind, part.strip("#'\" ")


def hash_pieces(text):
    for line, part in enumerate(text.splitlines(), 1):
        if re.match(r"\s*#(?!!)", part):
            yield line, "comment", part.strip("# ")


def document_pieces(text):
    text = re.sub(r"```.*?```", lambda fence: "\n" * fence[0].count("\n"), text, flags=re.S)
    for line, part in enumerate(text.splitlines(), 1):
        if part.strip():
            yield line, "comment", re.sub(r"\]\([^)]*\)", "]", part.strip(" >"))


def pieces(path):
    if path.suffix in C_FILES:
        return c_pieces(path.read_text())
    if path.suffix == ".py":
        return python_pieces(path)
    if path.suffix in HASH_FILES or path.name in ("CMakeLists.txt", "Makefile"):
        return hash_pieces(path.read_text())
    return document_pieces(path.read_text()) if path.suffix == ".md" else ()


def paragraphs(parts):
    """Joins the pieces of one kind on consecutive lines: (text, [offset of a piece], [line of a piece])."""
    text, offsets, lines, last = "", [], [], None
    for line, kind, part in parts:
        if last != kind or line > lines[-1] + 1 or not part:
            yield text, offsets, lines
            text, offsets, lines, last = "", [], [], kind
        elif kind == "comment":
            text += " "
        offsets.append(len(text))
        lines.append(line)
        text += part
    yield text, offsets, lines


def complaints(root, rules, skipped):
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, text=True,
                         capture_output=True, check=True).stdout.splitlines()
    for name in (n for n in out if not n.startswith(skipped) and (root / n).is_file()):
        for text, offsets, lines in paragraphs(pieces(root / name)):
            for pattern, replacement, reason, folders in rules:
                for match in pattern.finditer(text) if name.startswith(folders) else ():
                    line = lines[bisect.bisect_right(offsets, match.start()) - 1]
                    yield f'{name}:{line}: "{match[0].strip()}": write {replacement} ({reason})'


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    rules, skipped = read_rules(root / "tools/words.txt")
    bad = list(complaints(root, rules, skipped or ("\0",)))
    print("\n".join(bad) if bad else "every comment, message and document uses the field's words")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
