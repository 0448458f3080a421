#!/usr/bin/env python3
"""The C interface is what it was at the last release, or more: functions are added, structs grow at their end.

Usage: abi_test.py C_COMPILER [TEST…]
       abi_test.py --record C_COMPILER   at a release: writes abi/latte.abi and abi/structs.txt

A library with an empty body for every function of the C headers stands for liblatte: it has the types of the interface and nothing else. That
liblatte exports these functions is tested in tests/e2e/package_test.py. The comparison needs Debian's abigail-tools.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include/latte/latte.h"
OTHERS = sorted(set(ROOT.glob("include/latte/latte*.h")) - {HEADER})
RECORD = pathlib.Path(__file__).parent / "abi"
# A member at the end of a struct is no break: its `size` says whether a program has it.
GROWTH = "[suppress_type]\n  type_kind = struct\n  has_size_change = yes\n  has_data_member_inserted_at = end\n"
CC = None


def run(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, timeout=100, cwd=cwd)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def plain(header):
    """The header without comments and preprocessor lines."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r"^#ifdef __cplusplus\n.*?#endif", "", text, flags=re.S | re.M)
    return re.sub(r"^#.*$", "", text, flags=re.M)


def lay_out(folder, header):
    """Puts the C headers into a folder, latte.h with the text `header`. Their texts, and the lines that include them."""
    (folder / "latte").mkdir(exist_ok=True)
    texts = {HEADER.name: header} | {path.name: path.read_text() for path in OTHERS}
    for name, text in texts.items():
        (folder / "latte" / name).write_text(text)
    return "\n".join(map(plain, texts.values())), "".join(f'#include "latte/{name}"\n' for name in texts)


def library(folder, header):
    """A shared library with the functions of the headers, with the types in its debug information."""
    text, includes = lay_out(folder, header)
    functions = re.findall(r"^[\w][\w \*]*?\blatte_\w+\([^;{]*\);", text, re.M)
    bodies = [f"{text[:-1]} {{ __builtin_trap(); }}" for text in functions if not text.startswith("typedef")]
    source, out = folder / "interface.c", folder / "liblatte.so"
    source.write_text(includes + "\n".join(bodies) + "\n")
    run(CC, "-std=c11", "-g", "-O0", "-w", "-fPIC", "-shared", "-I.", source.name, "-o", out, cwd=folder)
    return out


def described(folder, header):
    """The interface in abidw's words, without paths of this machine."""
    out = folder / "now.abi"
    run("abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--out-file", out, library(folder, header))
    return out


def sizes(folder, header):
    """{struct: (bytes, 1 if it has a member `size` and may grow)}"""
    text, includes = lay_out(folder, header)
    bodies = re.findall(r"^typedef struct (latte_\w+) \{(.*?)^\}", text, re.S | re.M)
    prints = "".join(f'printf("{name} %zu {int(bool(re.search(r"size_t size;", body)))}\\n", sizeof({name}));\n' for name, body in bodies)
    source, program = folder / "sizes.c", folder / "sizes"
    source.write_text(f"#include <stdio.h>\n{includes}int main(void) {{\n{prints}return 0;\n}}\n")
    run(CC, "-std=c11", f"-I{folder}", source, "-o", program)
    lines = [line.split() for line in run(program).splitlines()]
    return {name: (int(size), int(grows)) for name, size, grows in lines}


def recorded_sizes():
    lines = [line.split() for line in (RECORD / "structs.txt").read_text().splitlines() if not line.startswith("#")]
    return {name: (int(size), int(grows)) for name, size, grows in lines}


def broken_sizes(before, now):
    """Structs that are too small, too large or gone for a program that was compiled before."""
    for name, (size, grows) in before.items():
        if name not in now:
            yield f"{name}: is gone"
        elif now[name][0] < size or (now[name][0] > size and not grows):
            yield f"{name}: expected {'at least ' * grows}{size} bytes, found {now[name][0]}"


class WithFolder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="latte_abi_")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.header = HEADER.read_text()


class Sizes(WithFolder):
    def test_structs_have_kept_their_sizes_or_grown(self):
        self.assertEqual(list(broken_sizes(recorded_sizes(), sizes(self.folder, self.header))), [])

    def test_a_struct_that_may_not_grow_is_noticed(self):
        grown = self.header.replace("} latte_text;", "  int64_t more;\n} latte_text;").replace("} latte_stats;", "  int64_t more;\n} latte_stats;")
        self.assertNotEqual(grown, self.header)
        found = list(broken_sizes(recorded_sizes(), sizes(self.folder, grown)))
        self.assertEqual([text.split(":")[0] for text in found], ["latte_text"])


class Interface(WithFolder):
    def changes(self, header):
        """What abidiff says about the interface of `header`; empty: compatible."""
        (self.folder / "growth.ini").write_text(GROWTH)
        command = ["abidiff", "--no-added-syms", "--suppressions", self.folder / "growth.ini", RECORD / "latte.abi"]
        done = subprocess.run([*command, described(self.folder, header)], text=True, capture_output=True, timeout=100)
        return f"exit {done.returncode}: {done.stdout}{done.stderr}" if done.returncode else ""

    def test_functions_and_types_have_stayed(self):
        self.assertEqual(self.changes(self.header), "")

    def test_functions_may_be_added_and_structs_may_grow(self):
        more = self.header.replace("} latte_stats;", "  int64_t more;\n} latte_stats;")
        more = more.replace("const char* latte_version(void);", "const char* latte_version(void);\nint latte_more(void);")
        self.assertEqual(more.count("more"), self.header.count("more") + 2)
        self.assertEqual(self.changes(more), "")

    def test_breaks_are_noticed(self):
        for before, after in (("const char* latte_version(void);", "const char* latte_version(int which);"),
                              ("const char* latte_code_name(int32_t code);", ""),
                              ("  int64_t computed_tokens;", "  int32_t between;\n  int64_t computed_tokens;"),
                              ("LATTE_UNSUPPORTED = 3", "LATTE_UNSUPPORTED = 33")):
            with self.subTest(after):
                self.assertIn(before, self.header)
                self.assertNotEqual(self.changes(self.header.replace(before, after)), "")


def record():
    with tempfile.TemporaryDirectory(prefix="latte_abi_") as scratch:
        folder = pathlib.Path(scratch)
        shutil.copy(described(folder, HEADER.read_text()), RECORD / "latte.abi")
        lines = [f"{name} {size} {grows}" for name, (size, grows) in sorted(sizes(folder, HEADER.read_text()).items())]
    heading = "# Bytes of each struct of latte.h at the last release; 1: it carries its size and may grow. Written by abi_test.py --record."
    (RECORD / "structs.txt").write_text("\n".join([heading, *lines]) + "\n")


if __name__ == "__main__":
    words = sys.argv[1:]
    recording = words[0] == "--record"
    CC = words[1] if recording else words[0]
    if recording:
        record()
    elif "Interface" in words and not shutil.which("abidw"):
        print("not installed: abidw (Debian: abigail-tools)")
    else:
        unittest.main(argv=[sys.argv[0], *words[1:]])
