"""Finds the blocks of commands in a Markdown page, and divides each into commands."""
import dataclasses
import os
import re
import subprocess

SHELL = {"sh", "bash", "console", "shell"}
FENCE = re.compile(r"^( *)(`{3,})\s*([\w-]*)")
NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
COMMAND = re.compile(r"^\s*(latte|build/release/latte|make|cmake|curl|git|mpirun|docker|systemctl) ")


@dataclasses.dataclass
class Block:
    page: str
    line: int          # of the fence, from 1
    language: str
    lines: list[str]
    not_run: str = ""  # the reason, from the comment before the block

    @property
    def where(self):
        return f"{self.page}:{self.line}"


def blocks_of(page, text):
    """Every fenced block of `text`."""
    found, block, fence, reason = [], None, "", ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if block is not None:
            if mark and mark[2] == fence and not mark[3]:
                found.append(block)
                block = None
            else:
                block.lines.append(line)
        elif mark:
            block, fence = Block(page, number, mark[3], [], reason), mark[2]
            reason = ""
        elif line.strip():
            comment = NOT_RUN.search(line)
            reason = comment[1] if comment else ""
    if block is not None:
        raise ValueError(f"{block.where}: this block is not closed")
    return found


def is_shell(block):
    return block.language in SHELL


def lacks_language(block):
    """Whether the block has commands but its fence does not say so, which would keep it from being run."""
    return not block.language and any(COMMAND.match(line) for line in block.lines)


def is_whole(text):
    """Whether bash takes `text` for one or several finished commands."""
    if text.rstrip("\n").endswith("\\"):
        return False
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    return done.returncode == 0 and "here-document" not in done.stderr  # bash only warns that its end is missing


def commands_of(block):
    """[(line, text)]: the shortest runs of lines that bash takes for finished commands."""
    found, text, first = [], "", 0
    for number, line in enumerate(block.lines, block.line + 1):
        if not text and not line.split("#")[0].strip():
            continue
        first = first if text else number
        text += line + "\n"
        if is_whole(text):
            found.append((first, text))
            text = ""
    if text:
        raise ValueError(f"{block.page}:{first}: bash takes this for an unfinished command:\n{text}")
    return found
