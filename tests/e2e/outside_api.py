"""Public headers and liblatte.so: every name with its type, value, default or offset. Used by outside_test.py."""
import re
import subprocess

KEYWORDS = re.compile(r"\b(static|inline|explicit|constexpr|virtual|template)\b|\[\[nodiscard\]\]")
INCLUDES = "#include <cstddef>\n#include <cstdio>\n#include <type_traits>\n"
CODES = ("InvalidArgument", "NotFound", "Unsupported", "Corrupt", "Exhausted", "Cancelled", "Unavailable", "Internal")


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def block_end(text, start):
    """The offset after the brace that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    raise ValueError("a brace that nothing closes")


def statements(text):
    """(head, body or None, text between body and semicolon) of each declaration."""
    at = 0
    while match := re.compile(r"[;{]").search(text, at):
        head = squeezed(text[at:match.start()])
        at = match.end()
        if match[0] == ";":
            if head:
                yield head, None, ""
            continue
        end = block_end(text, match.start())
        body = text[match.end():end - 1]
        at, tail = end, ""
        if re.match(r"(typedef )?(enum|struct|class)\b|.*=$", head) or "=" in head:
            semicolon = text.index(";", end)
            at, tail = semicolon + 1, squeezed(text[end:semicolon])
        yield head, body, tail


def split_arguments(text):
    out, depth = [""], 0
    for char in text:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            out.append("")
        else:
            out[-1] += char
    return [squeezed(part) for part in out if part.strip()]


def parameter_type(text):
    text = re.sub(r" = .*$", "", text)
    return text if re.fullmatch(r"void|[\w:]+", text) else squeezed(re.sub(r"(?<=[\s*&>])\w+$", "", text))


def parameters(text):
    return ", ".join(t for t in map(parameter_type, split_arguments(text)) if t != "void")


class Header:
    """Entries of one header file."""

    def __init__(self, name, text):
        self.entries = {f"header latte/{name}"}
        self.nested = {}
        text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
        text = text.replace("\\\n", " ")
        for macro, arguments in re.findall(r"^#define (\w+)(\([^)]*\))?", text, re.M):
            if not macro.endswith("_H_"):
                self.entries.add(f"macro {macro}{arguments}")
        text = re.sub(r"^#ifdef __cplusplus\n.*?#endif", "", text, flags=re.S | re.M)
        self.scope(re.sub(r"^#.*$", "", text, flags=re.M), "")

    def scope(self, text, space):
        for head, body, tail in statements(text):
            if match := re.fullmatch(r"namespace (\w+)", head):
                self.scope(body, match[1] + "::")
            elif re.fullmatch(r"inline namespace \w+", head):
                self.scope(body, space)  # its name carries the version, and users never write it
            elif match := re.match(r"(?:typedef )?enum (?:class )?(\w+)", head):
                self.enumeration(space + match[1], "class" in head, body)
            elif match := re.fullmatch(r"(?:typedef )?(?:struct|class) (\w+)", head):
                self.record(space + match[1], body, "class" in head)
            elif match := re.fullmatch(r"typedef (?:struct )?(.+?)\b(\w+)", head):
                self.entries.add(f"type {match[2]} = {match[1].strip()}" if "struct" not in head else f"type {match[2]}")
            elif match := re.fullmatch(r"typedef (.+?)\(\*(\w+)\)\((.*)\)", head):
                self.entries.add(f"type {match[2]} = {match[1].strip()}(*)({parameters(match[3])})")
            elif match := re.fullmatch(r"(?:template <class (\w+)> )?using (\w+) = (.+)", head):
                name = f"{space}{match[2]}" + ("<int>" if match[1] else "")
                value = re.sub(rf"\b{match[1]}\b", "int", match[3]) if match[1] else match[3]
                self.entries.add(f"type {name} = {value}")
            elif head.startswith(("inline constexpr", "template <")):
                pass  # constants and templates: fields.h, which describes options to their readers
            elif "(" in head:
                self.function(head, space)
            elif not head.startswith("template"):
                raise ValueError(f"cannot read: {head}")

    def enumeration(self, name, scoped, body):
        self.entries.add(f"type {name}")
        value = -1
        for item in split_arguments(body):
            member, _, given = item.partition(" = ")
            value = int(given) if given else value + 1
            self.entries.add(f"enumerator {name + '::' if scoped else ''}{member} = {value}")

    def record(self, name, body, is_class):
        self.entries.add(f"type {name}")
        if body is None:
            return
        public = body.split("private:")[0].replace("public:", "")
        self.nested = {}
        for head, inner, tail in statements(public):
            if match := re.fullmatch(r"using (\w+) = (.+)", head):
                self.nested[match[1]] = f"{name}::{match[1]}"
                self.entries.add(f"type {name}::{match[1]} = {match[2]}")
            elif head.startswith("template <"):
                pass
            elif "(" in head.partition(" = ")[0]:
                if not head.endswith("= delete") and not re.match(r"(explicit |virtual )?~?\w+\(", head):
                    self.function(head, name + "::")
            else:
                self.field(name, head if inner is None else f"{head}{{{inner}}} {tail}")

    def field(self, name, text):
        match = re.fullmatch(r"(.+?[\s*&>])(\w+)(\[\d+\])?(?: = (.+)| ?=?\{\} )?", text)
        default = f" = {match[4]}" if match[4] else ""
        self.entries.add(f"field {name}::{match[2]} : {squeezed(match[1] + (match[3] or ''))}{default}")

    def function(self, head, space):
        head = re.sub(r" = 0$", "", head)
        static = "static " if re.search(r"\bstatic\b", head) else ""
        match = re.fullmatch(r"(.+?[\s*&])(\w+)\((.*)\)( const)?", squeezed(KEYWORDS.sub("", head)))
        signature = f"{squeezed(match[1])} ({parameters(match[3])}){match[4] or ''}"
        for short, full in self.nested.items():
            if space.startswith(full.rpartition("::")[0]):
                signature = re.sub(rf"\b{short}\b", full, signature)
        self.entries.add(f"function {static}{space}{match[2]} : {signature}")


def header_entries(root):
    out = set()
    for path in sorted((root / "include/latte").glob("*.h")):
        out |= Header(path.name, path.read_text()).entries
    return out


def without_space(text):
    return text.replace("latte::", "")


def check_lines(entry):
    """Lines of C++ that do not compile unless the entry is true."""
    kind, _, rest = entry.partition(" ")
    rest = without_space(rest)
    if kind == "header":
        return []
    if kind == "macro":
        return [f"#ifndef {rest.partition('(')[0]}", "#error missing", "#endif"]
    if kind == "type":
        name, _, value = rest.partition(" = ")
        same = f"static_assert(std::is_same_v<{name}, {value}>);" if value else ""
        return [f"namespace latte {{ void Takes({name}*); {same} }}"]
    if kind == "enumerator":
        name, _, value = rest.partition(" = ")
        return [f"namespace latte {{ static_assert(static_cast<int>({name}) == {value}); }}"]
    name, _, kind_of = rest.partition(" : ")
    if kind == "field":
        kind_of, _, default = kind_of.partition(" = ")
        return [f"namespace latte {{ static_assert(std::is_same_v<decltype({name}), {kind_of}>); }}"]
    if kind == "offset":
        name, _, value = rest.partition(" = ")
        record, _, member = name.partition("::")
        return [f"static_assert(offsetof({record}, {member}) == {value});"]
    static, name = name.startswith("static "), name.removeprefix("static ")
    result, _, arguments = kind_of.partition(" (")
    owner = "" if static or "::" not in name else name.rpartition("::")[0] + "::"
    return [f"namespace latte {{ [[maybe_unused]] constexpr auto f@ = static_cast<{result} ({owner}*)({arguments}>(&{name}); }}"]


def default_check(entry, number):
    if not entry.startswith("field ") or " = " not in entry:
        return ""
    name, _, rest = without_space(entry.removeprefix("field ")).partition(" : ")
    record, _, member = name.partition("::")
    return f"  if (!(latte::{record}{{}}.{member} == ({rest.partition(' = ')[2]}))) std::puts(\"{number}\");\n"


class HeaderCheck:
    def __init__(self, entries):
        self.entries = entries
        self.source, self.owners = INCLUDES, []
        for entry in entries:
            if entry.startswith("header "):
                name = entry.split()[1]
                for line in (f'#if __has_include("{name}")', f'#include "{name}"', "#else", "#error missing", "#endif"):
                    self.add(entry, line)
        for number, entry in enumerate(entries):
            for line in check_lines(entry):
                self.add(entry, line.replace("f@", f"f{number}"))

    def add(self, entry, line):
        self.source += line + "\n"
        self.owners.append((self.source.count("\n"), entry))

    def program(self):
        defaults = "".join(default_check(e, i) for i, e in enumerate(self.entries)).replace("Code::", "latte::Code::")
        codes = "".join(f'  std::printf("%s %d %d\\n", std::string(CodeName(Code::k{c})).c_str(), '
                        f"HttpStatus(Code::k{c}), ExitCode(Code::k{c}));\n" for c in CODES)
        return (f"{self.source}#include <string>\nint main() {{\n{defaults}"
                f'  using namespace latte;\n  std::puts("codes");\n{codes}}}\n')

    def run(self, outside):
        """(entries that are not true, codes)"""
        source, program = outside.scratch / "outside.cc", outside.scratch / "outside_program"
        source.write_text(self.program())
        done = subprocess.run(
            [*outside.cxx, "-std=c++20", "-O0", f"-I{outside.root / 'include'}", str(source), "-o", str(program),
             f"-L{outside.build}", "-llatte", f"-Wl,-rpath,{outside.build}"], text=True, capture_output=True)
        if done.returncode != 0:
            lines = {int(n) for n in re.findall(r"outside\.cc:(\d+):\d+: (?:fatal )?error", done.stderr)}
            bad = [entry for line, entry in self.owners if line in lines]
            return bad or [f"a program with the public headers does not build:\n{done.stderr[:2000]}"], None
        out = subprocess.run([program], text=True, capture_output=True, check=True).stdout
        numbers, _, codes = out.partition("codes\n")
        return [self.entries[int(n)] for n in numbers.split()], {f"code {line}" for line in codes.splitlines()}


def offset_entries(outside, entries):
    """Offsets of the fields of C structs, which grow only at their end."""
    fields = re.findall(r"^field (latte_\w+)::(\w+) ", "\n".join(sorted(entries)), re.M)
    prints = "".join(f'std::printf("offset {r}::{m} = %zu\\n", offsetof({r}, {m}));\n' for r, m in fields)
    source, program = outside.scratch / "offsets.cc", outside.scratch / "offsets"
    source.write_text(f'{INCLUDES}#include "latte/latte.h"\nint main() {{\n{prints}}}\n')
    subprocess.run([*outside.cxx, "-std=c++20", f"-I{outside.root / 'include'}", str(source), "-o", str(program)], check=True)
    return set(subprocess.run([program], text=True, capture_output=True, check=True).stdout.splitlines())


def symbols(outside):
    library = outside.build / "liblatte.so"
    listed = subprocess.run(["nm", "-D", "--defined-only", library], text=True, capture_output=True, check=True).stdout
    names = {line.split(" ", 2)[2].split("@")[0] for line in listed.splitlines()}
    return {f"symbol {name}" for name in names if not name.startswith("_Z")} | {f"symbol soname {(outside.build / 'liblatte.so').readlink().name}"}
