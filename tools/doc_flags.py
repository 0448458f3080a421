"""Flags in documents and in the comments of headers: `--flag` must be one of latte, of a script here, or of a tool in TOOLS.

docs/cli.md and docs/options.md, which latte prints and a test compares, list the flags of latte. In a command line a flag must
be one of the program before it. Alone it must be one of latte, or of a script or a tool that the page names.
"""
import re

from cpp_names import comments_of

# Flags of other tools that the documents use. One that no document uses any more is an error.
TOOLS = {
    "cmake": "--build --preset --target",
    "ctest": "--preset",
    "curl": "--cacert",
    "docker": "--build-arg --memory --user",
    "firewall-cmd": "--add-port --add-source --permanent --reload --zone",
    "mpirun": "--bind-to --hostfile --mca",
    "pip": "--all --only-binary --require-hashes",
    "pkg-config": "--cflags --libs --variable",
    "srun": "--cpu-bind --kill-on-bad-exit --mpi",
    "systemctl": "--now",
}
COMMANDS, OPTIONS = "docs/cli.md", "docs/options.md"
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*(?![\w-])")  # capitals stand for anything: --NAME
PROGRAM = re.compile(r"(?<![\w.-])(?:(?P<script>(?:\.\./)*[\w./-]*\w+\.(?:py|sh))|(?P<latte>latte)((?: [a-z]+){0,2})|(?P<tool>"
                     + "|".join(TOOLS) + r"))(?![\w-])", re.I)
SCRIPT_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*(?![\w-])")  # capitals stand for anything: --NAME
FENCE = re.compile(r"^ *```")


def first_columns(text):
    """(heading, flag) of every row of a table: the flags in its first column. And of the shared options that a section names."""
    heading = ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        if line.startswith("| `"):
            yield from ((heading, flag) for flag in FLAG.findall(line.split(" | ")[0]))
        if line.startswith("[Shared options]"):
            yield from ((heading, flag) for flag in FLAG.findall(line))


class Flags:
    def __init__(self, root, files):
        self.common = {"--help", "--version"}  # and names of other programs, which several commands accept
        self.of_command = {}
        for name, kept in ((COMMANDS, self.of_command), (OPTIONS, None)):
            for heading, flag in first_columns((root / name).read_text()) if name in files else ():
                (self.common if kept is None else kept.setdefault(heading, set())).add(flag)
        self.of_latte = self.common.union(*self.of_command.values())
        self.scripts = {}  # by the name of their file
        for name in (f for f in files if f.endswith((".py", ".sh"))):
            self.scripts.setdefault(name.split("/")[-1], set()).update(SCRIPT_FLAG.findall((root / name).read_text()))
        self.used = set()  # (tool, flag)

    def of(self, program):
        """The flags of a match of PROGRAM."""
        if program["script"]:
            return self.scripts.get(program["script"].split("/")[-1], set())
        if program["tool"]:
            return set(TOOLS[program["tool"].lower()].split())
        words = program[0].split()
        for count in (3, 2):
            if (command := " ".join(words[:count])) in self.of_command:
                return self.of_command[command] | self.common
        return self.of_latte

    def note(self, program, flag):
        if program["tool"]:
            self.used.add((program["tool"].lower(), flag))
        return True


def commands_of(text):
    """(line, text) of each line of fenced code, with its continuations, and of each span of code; the rest line by line."""
    fenced, joined = False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif fenced:
            joined += line.rstrip("\\")
            if not line.endswith("\\"):
                yield number, joined
                joined = ""
        else:
            spans = re.findall(r"`([^`]+)`", line)
            yield from ((number, span) for span in spans)
            yield number, re.sub(r"`[^`]+`", "``", line)


def unknown(flags, text, on_page):
    """(flag, where it was looked for) of the flags in `text` that do not exist. on_page: the programs that the page names."""
    programs = list(PROGRAM.finditer(text))
    for match in FLAG.finditer(text):
        flag = match[0].replace("_", "-")
        before = [program for program in programs if program.end() <= match.start()]
        if any([flag in flags.of(program) and flags.note(program, flag) for program in before or on_page]):
            continue
        if before or flag not in flags.of_latte:
            yield match[0], " or ".join(dict.fromkeys(program[0].strip() for program in before)) or "latte"


def errors(root, files, documents):
    flags = Flags(root, files)
    for name in (f for f in files if f.endswith(".h")):
        for number, comment in comments_of((root / name).read_text()):
            for flag, program in unknown(flags, comment, ()):
                yield f"{name}:{number}: names {flag}, which is no flag of {program}"
    for name in documents:
        text = (root / name).read_text()
        on_page = list(PROGRAM.finditer(text))
        for number, command in commands_of(text):
            for flag, program in unknown(flags, command, on_page):
                yield f"{name}:{number}: names {flag}, which is no flag of {program}"
    for tool, listed in TOOLS.items():
        for flag in listed.split() if COMMANDS in files else ():
            if (tool, flag) not in flags.used:
                yield f"tools/doc_flags.py: no document uses {flag} of {tool}; remove it from TOOLS"
