"""C++ names in documents and in the comments of headers: `A::B` needs a class, an enumeration or a namespace A with B in it.

This is no C++ parser. It finds the bodies of classes, enumerations and namespaces by their braces, and takes for a member what
a declaration can end with there. Names of base classes and aliases are followed. What code itself writes as A::B exists, because
the compiler has seen it; so do names of `std` and of libraries.
"""
import collections
import re

SOURCES = (".h", ".cc", ".c", ".cu", ".cuh")
BUILD = ("CMakeLists.txt", ".cmake")  # latte::latte is a target
FOREIGN = {"std", "tl"}
NAME = re.compile(r"(?<![\w:.])[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)+")
TOKEN = re.compile(r'(?P<comment>//[^\n]*|/\*.*?\*/)|R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S)
BODY = re.compile(r"\b(?:namespace|class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:alignas\([^)]*\)\s*)?([\w:]+)"
                  r"(?:\s+final)?\s*(?::(?!:)(.*))?$", re.S)
DECLARED = re.compile(r"([A-Za-z_]\w*)\s*(?=[(;={,\[:]|$)")
ALIAS = re.compile(r"\busing\s+(\w+)\s*=([^;]*);")
PARAMETER = re.compile(r"\b(?:class|typename|[A-Z]\w*)(?:\.\.\.)?\s+(\w+)\s*(?=[,>=])")


def code_of(text):
    """`text` without comments, and with empty strings."""
    return TOKEN.sub(lambda match: " " if match["comment"] else '""', text)


def comments_of(text):
    """[(line, comment)], one for each line of a comment."""
    for match in TOKEN.finditer(text):
        for more, part in enumerate((match["comment"] or "").splitlines()):
            yield text.count("\n", 0, match.start()) + 1 + more, part


class Names:
    def __init__(self, root, files):
        self.members = collections.defaultdict(set)  # of a class, an enumeration or a namespace, by its last name
        self.bases = collections.defaultdict(set)
        self.written = set()                         # A::B as code has it
        for name in (f for f in files if f.endswith(SOURCES)):
            code = code_of((root / name).read_text())
            self.written.update(pair for chain in NAME.findall(code) for pair in pairs_of(chain))
            self.read(code)
        for name in (f for f in files if f.endswith(BUILD)):
            self.written.update(pair for chain in NAME.findall((root / name).read_text()) for pair in pairs_of(chain))

    def read(self, code):
        for name, target in ALIAS.findall(code):
            self.bases[name].update(re.findall(r"\w+", target))
        open_bodies, direct, start = [], [], 0  # of each open brace: its name or None, and the text at its own level
        for match in re.finditer(r"[{}]", code):
            text = code[start:match.start()]
            start = match.end()
            if open_bodies:
                direct[-1] += text + match[0]
            if match[0] == "{":
                head = BODY.search(re.split(r"[;{}]", direct[-1][:-1] if open_bodies else text)[-1])
                open_bodies.append(self.open(head) if head else None)
                direct.append("")
            elif open_bodies:
                name, body = open_bodies.pop(), direct.pop()
                if name:
                    self.members[name].update(declared(body))

    def open(self, head):
        chain = head[1].split("::")
        for outer, inner in zip(chain, chain[1:]):
            self.members[outer].add(inner)
        self.bases[chain[-1]].update(re.findall(r"\w+", head[2] or ""))
        return chain[-1]

    def has(self, outer, inner, seen=()):
        if inner.lstrip("~") == outer or inner in self.members.get(outer, ()):
            return True
        return any(self.has(base, inner, (*seen, outer)) for base in self.bases.get(outer, ()) if base != outer and base not in seen)

    def missing(self, chain, parameters=()):
        """What of A::B::C does not exist, or None."""
        for outer, inner in pairs_of(chain):
            if outer in FOREIGN:
                return None
            if (outer, inner) in self.written or self.has(outer, inner):
                continue
            if outer in parameters:
                if any(inner in of_one for of_one in self.members.values()):
                    continue
                return f"no class has {inner}"
            known = outer in self.members or outer in self.bases
            return f"{outer} has no {inner}" if known else f"there is no class or namespace {outer}"
        return None


def pairs_of(chain):
    names = chain.split("::")
    return list(zip(names, names[1:]))


def declared(body):
    """The names that the text of a body declares, without the bodies and the parameters in it."""
    body = re.sub(r"\(\s*\*\s*(\w+)\s*\)", r"\1", body)  # a pointer to a function
    while "(" in body:
        shorter = re.sub(r"\([^()]*\)", "[", body)  # a name before it is a name before a bracket
        if shorter == body:
            break
        body = shorter
    return DECLARED.findall(body)


def errors(root, files, documents):
    names = Names(root, files)
    for name in documents:
        for number, line in enumerate((root / name).read_text().splitlines(), 1):
            for chain in NAME.findall(line):
                if missing := names.missing(chain):
                    yield f"{name}:{number}: names {chain}, but {missing}"
    for name in (f for f in files if f.endswith((".h", ".cuh"))):
        text = (root / name).read_text()
        parameters = set(PARAMETER.findall(code_of(text)))
        for number, comment in comments_of(text):
            for chain in NAME.findall(comment):
                if missing := names.missing(chain, parameters):
                    yield f"{name}:{number}: names {chain}, but {missing}"
