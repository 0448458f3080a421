"""Random expressions over the operators, filters, tests and methods of templates.

    python3 tools/chat/expressions.py COUNT SEED FILE

writes expressions with their output by jinja2 (null: an error), in the form of tests/data/chat/snippets.json.
jinja_test compares them, and the expressions of another file:

    LATTE_TEST_EXPRESSIONS=FILE build/release/src/jinja/jinja_test

An integer beyond 64 bits anywhere counts as an error, because the interpreter has no longer ones.
"""

import json
import random
import sys

import template_env

VARIABLES = {
    "s": "Hello World",
    "u": "naïve Straße ΟΔΟΣ 日本語 😀",
    "lines": "one\n  two\n\nthree\n",
    "pad": " \t x y \n",
    "empty": "",
    "n": 7,
    "neg": -3,
    "big": 9007199254740993,
    "most": 9223372036854775807,
    "f": 2.5,
    "g": -0.1,
    "yes": True,
    "no": False,
    "nil": None,
    "xs": [3, 1, 2, 3],
    "fs": [0.5, -1.25, 3.0],
    "words": ["banana", "apple", "Cherry", "apple", "Émile"],
    "mixed": [1, "two", 3.0, None, True],
    "d": {"b": 1, "A": 3, "c": 2},
    "rows": [{"n": "one", "v": 1, "ok": True, "in": {"k": [5, 6]}}, {"n": "Two", "v": 2, "in": {"k": [4]}},
             {"n": "three", "v": 2, "ok": False, "in": {"k": [9]}}],
}


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        choice = self.random.choice(choices)
        return choice() if callable(choice) else choice

    def number(self, low, high):
        return str(self.random.randint(low, high))

    def any(self, depth):
        return self.pick(*(lambda make=make: make(depth) for make in
                           (self.integer, self.float, self.text, self.list, self.bool, self.dict)))

    def numeric(self, depth):
        return self.pick(lambda: self.integer(depth), lambda: self.float(depth))

    def integer(self, depth):
        if depth <= 0:
            return self.pick("n", "neg", lambda: self.number(0, 9), lambda: self.number(-20, 120), "big", "0x1F", "1_000",
                             "xs[0]", "rows.1.v", "{1: 4, 'a': 5}[1]", "most")
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        return self.pick(
            f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} // {b})", f"({a} % {b})", f"({a} // {b})", f"({a} % {b})",
            f"({a} ** {self.number(0, 4)})", f"(-{self.number(1, 5)} ** {self.number(0, 5)})", f"({a}) | abs", f"(- {a})",
            f"({a}) | round({self.number(-3, 2)})", lambda: f"({self.numbers(depth - 1)}) | length",
            lambda: f"({self.integers(depth - 1)}) | sum", lambda: f"({self.integers(depth - 1)}) | max",
            lambda: f"({self.integers(depth - 1)}) | min", lambda: f"rows | {self.pick('sum', 'max', 'min')}(attribute='v')",
            lambda: f"rows | sum(attribute='v', start={a})", lambda: f"({self.float(depth - 1)}) | round | int",
            lambda: f"({self.text(depth - 1)}) | length",
            lambda: f"({self.text(depth - 1)}).{self.pick('count', 'find', 'rfind', 'index')}({self.pick(repr('l'), repr('o'), repr(''))})",
            lambda: f"({self.text(depth - 1)}).find('o', {self.number(-3, 6)}, {self.number(-3, 12)})",
            "'12' | int", "'0x1f' | int(base=16)", "'zz' | int(base=36)", "'12.7' | int", "'x' | int(5)", "'1_0' | int",
            lambda: f"({self.integers(depth - 1)}).{self.pick('index', 'count')}({b})",
            f"{{{a}: 1, {b}: 2}}.get({a}, {b})", f"({a} if {self.bool(depth - 1)} else {b})")

    def float(self, depth):
        if depth <= 0:
            return self.pick("f", "g", "0.1", "1e16", "1.5e-7", "-0.0", "2.675", "1e22", lambda: f"{self.random.uniform(-50, 50):.3f}",
                             "fs[1]", "0.5", "12345.678")
        a, b = self.numeric(depth - 1), self.numeric(depth - 1)
        i, j = self.integer(depth - 1), self.integer(depth - 1)
        return self.pick(
            f"({i} / {j})", f"({i} / {j})", f"({a} + {self.float(0)})", f"({a} * {self.float(0)})", f"({a} - {self.float(0)})",
            f"({a} // {self.float(0)})", f"({a} % {self.float(0)})", f"({a} ** -1)", f"({self.float(0)} ** {self.number(0, 3)})",
            f"(({a}) | abs) ** 0.5", f"({self.float(depth - 1)}) | round({self.number(-3, 5)})",
            f"({a}) | round({self.number(-2, 3)}, '{self.pick('ceil', 'floor', 'common')}')", f"({a}) | float", f"({a}) | abs",
            lambda: f"fs | {self.pick('sum', 'max', 'min')}", lambda: f"(fs + [{b}]) | {self.pick('max', 'min')}", "' 1.5 ' | float",
            "'x' | float(2.5)")

    def text(self, depth):
        if depth <= 0:
            return self.pick("s", "u", "lines", "pad", "empty", "words[0]", "'a-b c'", "'ß'", "\"it's\"", "rows[1].n", "'x\\ny'",
                             "'hello (world) of_text'")
        a, b = self.text(depth - 1), self.text(depth - 1)
        w = self.number(-2, 14)
        return self.pick(
            f"({a} ~ {b})", f"({a} + {b})", f"({a} * {self.number(-1, 3)})", f"({a} ~ {self.any(depth - 1)})",
            f"({a}) | indent", f"({a}) | indent({w})", f"({a}) | indent({w}, {self.pick('true', 'false')}, {self.pick('true', 'false')})",
            f"({a}) | indent('> ', first=true)", f"({a}) | title", f"({a}).title()", f"({a}) | upper", f"({a}) | lower",
            f"({a}) | capitalize", f"({a}) | replace('l', {b})", f"({a}) | center({w})", f"({a}).center({w}, '*')",
            f"({a}) | truncate({self.number(3, 9)})", f"({a}) | truncate({self.number(3, 9)}, true, '…', 0)",
            f"'%s|%5s|%-5s' % ({a}, {self.integer(0)}, {self.text(0)})", f"'%d %05d %+d %x' % ({self.integer(0)}, {self.integer(0)}, n, 255)",
            f"'%.2f %8.3f %e %g' % ({self.numeric(0)}, {self.float(0)}, {self.float(0)}, {self.float(0)})", f"'%r' % ({a},)",
            f"'%s and %s' | format({self.any(0)}, {a})", f"'%(k)s' % {{'k': {self.any(0)}}}",
            f"'{{}}:{{:>8}}'.format({self.any(0)}, {self.text(0)})", f"'{{0:.2f}}/{{1:,}}'.format({self.numeric(0)}, {self.integer(0)})",
            f"'{{:05d}} {{:x}} {{:^9}}'.format({self.integer(0)}, {self.number(0, 300)}, {self.text(0)})",
            f"'{{0[n]}}{{1.real}}'.format(rows[0], 5)" if False else f"'{{0[n]}}'.format(rows[0])",
            lambda: f"{self.pick(repr(', '), repr(''), 'empty')}.join({self.texts(depth - 1)})",
            lambda: f"({self.list(depth - 1)}) | join({self.pick(repr('-'), repr(''))})", f"({a}).zfill({w})",
            f"({a}).{self.pick('ljust', 'rjust')}({w}, '.')", f"({a}).{self.pick('partition', 'rpartition')}('o')[{self.number(0, 2)}]",
            f"({a}).{self.pick('removeprefix', 'removesuffix', 'strip', 'lstrip', 'rstrip')}('Hed')", f"({a})[{w}:]",
            f"({a})[::{self.pick('-1', '2')}]", f"({a}) | reverse", f"({a}) | first", f"({self.numeric(depth - 1)}) | string",
            f"({a} if {self.bool(depth - 1)} else {b})", lambda: f"({self.texts(depth - 1)}) | {self.pick('max', 'min', 'first', 'last')}",
            lambda: f"({self.any(depth - 1)}) | tojson", lambda: f"({self.any(depth - 1)}) | tojson(indent={self.number(0, 3)})",
            f"({a}) | trim")

    def integers(self, depth):
        if depth <= 0:
            return self.pick("xs", lambda: "[" + ", ".join(self.integer(0) for _ in range(self.random.randint(0, 4))) + "]",
                             lambda: f"range({self.number(-2, 6)})", lambda: f"range({self.number(-5, 5)}, {self.number(-5, 9)}, {self.pick('1', '2', '-1')})",
                             "[true, 2, 1.0, 1]")
        a = self.integers(depth - 1)
        return self.pick(f"({a}) | sort", f"({a}) | sort(reverse=true)", f"({a}) | unique | list", f"({a}) | list",
                         f"({a} | list + [{self.integer(depth - 1)}])", f"({a}) | select('{self.pick('odd', 'even', 'gt', '<', 'divisibleby')}', 2) | list"
                         if self.random.random() < 0.5 else f"({a}) | reject('{self.pick('odd', 'even')}') | list",
                         f"({a}) | map('abs') | list", f"({a}) | reverse | list", "rows | map(attribute='v') | unique | list",
                         f"({a} | list)[{self.number(-2, 3)}:]", "rows | map(attribute='in.k.0') | sort", f"({a} | list) * {self.number(0, 2)}",
                         f"rows | map(attribute='in.k') | sum(start=[{self.integer(0)}])")

    def numbers(self, depth):
        return self.pick(lambda: self.integers(depth), "fs", lambda: f"({self.integers(depth)} | list + fs) | sort")

    def texts(self, depth):
        if depth <= 0:
            return self.pick("words", "rows | map(attribute='n') | list", lambda: f"[{self.text(0)}, {self.text(0)}]", "['a', 'B', 'a', 'b']",
                             "s.split('o')", "lines.splitlines()", "d | list")
        a = self.texts(depth - 1)
        return self.pick(f"({a}) | sort", f"({a}) | sort(case_sensitive=true)", f"({a}) | sort(reverse=true)", f"({a}) | unique | list",
                         f"({a}) | unique(case_sensitive=true) | list", f"({a}) | map('{self.pick('upper', 'title', 'trim', 'capitalize')}') | list",
                         f"({a}) | reject('equalto', {self.text(0)}) | list", f"({a})[{self.number(-2, 2)}:]", f"({a} + {self.texts(0)})",
                         f"({a}) | map('replace', 'a', {self.text(0)}) | list", f"({a}) | select('{self.pick('lower', 'upper')}') | list",
                         "rows | sort(attribute='n') | map(attribute='n') | list", "rows | sort(attribute='v,n') | map(attribute='n') | list",
                         "rows | groupby('v') | map(attribute='list') | map('last') | map(attribute='n') | list")

    def list(self, depth):
        return self.pick(
            lambda: self.integers(depth) + " | list" if depth <= 0 else self.integers(depth), lambda: self.texts(depth), "fs", "mixed",
            lambda: f"({self.integers(depth - 1)}) | batch({self.number(1, 3)}{self.pick('', ', 0')}) | list",
            lambda: f"({self.texts(depth - 1)}) | slice({self.number(1, 4)}{self.pick('', ', ' + repr('-'))}) | list",
            lambda: f"({self.dict(depth - 1)}) | dictsort", lambda: f"d | dictsort({self.pick('true', 'false')}, '{self.pick('key', 'value')}', {self.pick('true', 'false')})",
            "rows | groupby('v')", "rows | groupby('ok', default=false) | map(attribute=0) | list", "d.items() | list | sort", "d | items | map('first') | list",
            lambda: f"[{self.any(depth - 1)}, {self.any(depth - 1)}]", lambda: f"({self.any(depth - 1)}, {self.any(depth - 1)})",
            "rows | map(attribute='ok', default='?') | list", "rows | selectattr('v', '==', 2) | map(attribute='n') | list",
            lambda: f"rows | selectattr('v', '{self.pick('>=', '<', 'ne', 'in')}', {self.pick('1', '2', '[1]')}) | list | length")

    def bool(self, depth):
        if depth <= 0:
            return self.pick("yes", "no", "nil is none", "n > 3", "'a' in d", "1 in {1: 2}", "s is lower", "'upper' is filter", "'odd' is test")
        compare = self.pick("<", "<=", "==", "!=", ">", ">=")
        return self.pick(
            f"({self.numeric(depth - 1)} {compare} {self.numeric(depth - 1)})", f"({self.text(depth - 1)} {compare} {self.text(depth - 1)})",
            f"({self.integers(depth - 1)} | list {compare} {self.integers(depth - 1)} | list)", f"({self.integer(0)}, {self.text(0)}) < ({self.integer(0)}, {self.text(0)})",
            f"({self.any(depth - 1)}) is {self.pick('string', 'number', 'integer', 'float', 'sequence', 'mapping', 'iterable', 'none', 'true')}",
            f"({self.integer(depth - 1)}) is {self.pick('odd', 'even', 'divisibleby 3', 'sameas 7', 'eq 7', 'gt 2')}",
            f"({self.text(depth - 1)}) is {self.pick('upper', 'lower')}", f"({self.any(0)} in {self.list(0)})",
            f"({self.text(depth - 1)}).{self.pick('isupper', 'islower', 'isspace')}()", f"'A1b'.{self.pick('isdigit', 'isalpha', 'isalnum')}()",
            f"(not {self.bool(depth - 1)})", f"({self.bool(depth - 1)} and {self.bool(depth - 1)})", f"({self.numeric(0)} {compare} {self.text(0)})")

    def dict(self, depth):
        return self.pick("d", "rows[0]", lambda: f"{{{self.integer(0)}: {self.any(depth - 1)}, 'k': {self.integer(0)}, none: 1}}",
                         lambda: f"{{1: {self.text(0)}, 2.5: 'x', true: 'same as 1', {self.integer(0)}: 0}}", "dict(d, z=1)", "dict([('a', 1)])",
                         "{3: 'c', 1: 'a', 2: 'b'}", "d.copy()")


def main():
    count, seed, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    env = template_env.environment_of_64_bits()
    generator = Generator(seed)
    rows, seen = [], set()
    while len(rows) < count:
        source = "{{ " + generator.any(generator.random.randint(1, 3)) + " }}"
        if source in seen or len(source) > 300:
            continue
        seen.add(source)
        try:
            text = env.from_string(source).render(**json.loads(json.dumps(VARIABLES)))
        except Exception:
            text = None
        if text is None and generator.random.random() < 0.5 or (text and ("<generator" in text or "<function" in text or len(text) > 2000)):
            continue
        rows.append([source, text])
    with open(path, "w") as out:
        out.write(json.dumps({"variables": VARIABLES, "immutable": rows}, ensure_ascii=False, separators=(",", ":")).replace('],["', '],\n["') + "\n")
    print(f"{count} expressions, {sum(text is None for _, text in rows)} errors, {len(json.dumps(rows))} bytes")


if __name__ == "__main__":
    main()
