"""A small grammar engine: one compiled grammar both writes texts and checks them.

Notation of a rule (plain strings, see story_rules.py):

    {hero.name}   a slot: attribute `name` of the table row bound to the variable `hero`
    <lost>        another rule
    [a|b|]        a choice, each branch equally likely; branches may be empty and may nest

A variable is bound to one row of its table where it is first met; every later slot of that
variable must agree with that row, which is how pronouns, objects, and places stay consistent.
The generator and the parser walk the same compiled nodes, so they cannot drift apart.
"""

import functools
import math
import random
import re

TOKEN = re.compile(r"\{(\w+)\.(\w+)\}|<(\w+)>|([\[|\]])")


class Grammar:
    """Rules, tables, and constraints, compiled. Immutable after construction.

    rules: name -> list of alternatives (strings in the notation above).
    variables: name -> list of rows (dict attribute -> text).
    distinct: (variable, variable, attribute): the two rows must differ in that attribute.
    same: (variable, attribute, variable, attribute): the two values must be equal.
    """

    def __init__(self, rules, variables, distinct=(), same=()):
        self.variables = variables
        self.rules = {name: [compile_template(text) for text in alternatives]
                      for name, alternatives in rules.items()}
        self.checks = {name: [] for name in variables}
        for one, two, attribute in distinct:
            self._add_check(one, attribute, two, attribute, equal=False)
        for one, attribute_one, two, attribute_two in same:
            self._add_check(one, attribute_one, two, attribute_two, equal=True)

    def _add_check(self, one, attribute_one, two, attribute_two, equal):
        self.checks[one].append((attribute_one, two, attribute_two, equal))
        self.checks[two].append((attribute_two, one, attribute_one, equal))

    def _fits(self, variable, row, bound):
        """True if binding `row` to `variable` breaks no constraint with the rows already bound."""
        for attribute, other, other_attribute, equal in self.checks[variable]:
            if other in bound and (row[attribute] == bound[other][other_attribute]) != equal:
                return False
        return True

    def generate(self, rng, rule="story"):
        """One random text of `rule`. rng: random.Random."""
        pieces = []
        self._write(rng.choice(self.rules[rule]), rng, {}, pieces)
        return "".join(pieces)

    def _write(self, nodes, rng, bound, pieces):
        for node in nodes:
            kind = node[0]
            if kind == "text":
                pieces.append(node[1])
            elif kind == "slot":
                variable, attribute = node[1], node[2]
                if variable not in bound:
                    rows = self.variables[variable]
                    if self.checks[variable]:
                        rows = [row for row in rows if self._fits(variable, row, bound)]
                    bound[variable] = rng.choice(rows)
                pieces.append(bound[variable][attribute])
            elif kind == "rule":
                self._write(rng.choice(self.rules[node[1]]), rng, bound, pieces)
            else:
                self._write(rng.choice(node[1]), rng, bound, pieces)

    def parse(self, text, rule="story"):
        """(True, "") if `text` is a text of `rule`, else (False, where and what was expected)."""
        furthest = [0, set()]
        for nodes in self.rules[rule]:
            for end, _ in self._match(nodes, 0, text, 0, {}, furthest):
                if end == len(text):
                    return True, ""
                self._expect(furthest, end, "end of text")
        position, expected = furthest
        return False, (f"at character {position} found {text[position:position + 24]!r}, "
                       f"expected one of {sorted(expected)[:6]}")

    @staticmethod
    def _expect(furthest, position, what):
        if position > furthest[0]:
            furthest[0], furthest[1] = position, set()
        if position == furthest[0]:
            furthest[1].add(what)

    def _match(self, nodes, index, text, at, bound, furthest):
        """Yields (end, bindings) for every way nodes[index:] match text from `at`."""
        if index == len(nodes):
            yield at, bound
            return
        node = nodes[index]
        kind = node[0]
        if kind == "text":
            if text.startswith(node[1], at):
                yield from self._match(nodes, index + 1, text, at + len(node[1]), bound, furthest)
            else:
                self._expect(furthest, at, node[1])
        elif kind == "slot":
            for word, after in self._slot_words(node[1], node[2], bound):
                if text.startswith(word, at):
                    yield from self._match(nodes, index + 1, text, at + len(word), after, furthest)
                else:
                    self._expect(furthest, at, word)
        else:
            branches = self.rules[node[1]] if kind == "rule" else node[1]
            for branch in branches:
                for end, after in self._match(branch, 0, text, at, bound, furthest):
                    yield from self._match(nodes, index + 1, text, end, after, furthest)

    def _slot_words(self, variable, attribute, bound):
        """(text, bindings) for each row that may fill the slot."""
        if variable in bound:
            return [(bound[variable][attribute], bound)]
        return [(row[attribute], {**bound, variable: row})
                for row in self.variables[variable] if self._fits(variable, row, bound)]


def compile_template(text):
    """Notation -> nodes: ("text", s) | ("slot", v, a) | ("rule", r) | ("choice", lists)."""
    stack = [[[]]]  # one entry per open bracket: its branches, each a list of nodes
    position = 0
    for match in TOKEN.finditer(text):
        if match.start() > position:
            stack[-1][-1].append(("text", text[position:match.start()]))
        position = match.end()
        variable, attribute, rule, mark = match.groups()
        if variable:
            stack[-1][-1].append(("slot", variable, attribute))
        elif rule:
            stack[-1][-1].append(("rule", rule))
        elif mark == "[":
            stack.append([[]])
        elif mark == "|":
            stack[-1].append([])
        else:
            branches = stack.pop()
            stack[-1][-1].append(("choice", branches))
    if position < len(text):
        stack[-1][-1].append(("text", text[position:]))
    if len(stack) != 1 or len(stack[0]) != 1:
        raise ValueError(f"unbalanced brackets in rule {text!r}")
    return stack[0][0]


@functools.cache
def stories(far=False):
    """The grammar of the stories, or of the far stories (built once)."""
    import story_rules
    return Grammar(*story_rules.grammar_data(far))


def generate(rng):
    """One story. rng: random.Random."""
    return stories().generate(rng)


def generate_far(rng):
    """One far story: every detail that comes back agrees with its first mention."""
    return stories(far=True).generate(rng)


def parse(text):
    """(accepted, why not) for one story; accepts exactly what `generate` can write."""
    return stories().parse(text)


class CountingRandom(random.Random):
    """Adds up the information of every choice, in nats."""

    nats = 0.0

    def choice(self, seq):
        self.nats += math.log(len(seq))
        return super().choice(seq)


def nats_per_story(count=2000):
    """Mean information of a story's choices.

    Two derivations of one text count apart, so this is a little above the entropy of the texts.
    """
    rng = CountingRandom(3)
    for _ in range(count):
        generate(rng)
    return rng.nats / count


def corruptions(text, rng):
    """Broken variants of a story: (what was done, text)."""
    words = text.split(" ")
    at = rng.randrange(1, len(words) - 2)
    if words[at] != words[at + 1]:
        yield "swapped words", " ".join(words[:at] + [words[at + 1], words[at]] + words[at + 2:])
    yield "truncated", text[:rng.randrange(10, len(text) - 1)]
    yield "dropped word", " ".join(words[:at] + words[at + 1:])
    yield "trailing text", text + " The end."
    for old, new in ((" he ", " she "), (" she ", " he "), (" his ", " her ")):
        if old in text:
            yield "wrong pronoun", text.replace(old, new, 1)
    name = re.search(r" named (\w+)", text).group(1)
    later = text.rfind(name)
    if later > text.find(name):
        other = "Otto" if name != "Otto" else "Nina"
        yield "wrong name", text[:later] + other + text[later + len(name):]


def self_test(count=1000):
    """Checks that stories parse and that broken ones do not; returns a line per fact."""
    rng = random.Random(7)
    lengths, made, caught = [], {}, {}
    for _ in range(count):
        text = generate(rng)
        accepted, why = parse(text)
        assert accepted, f"{text}\n{why}"
        lengths.append(len(text.split()))
        for what, broken in corruptions(text, rng):
            if broken == text:
                continue
            made[what] = made.get(what, 0) + 1
            caught[what] = caught.get(what, 0) + (not parse(broken)[0])
    lines = [f"{count} stories parse; words {min(lengths)}..{max(lengths)}, "
             f"mean {sum(lengths) / count:.1f}"]
    lines += [f"{what}: {caught[what]} of {made[what]} refused" for what in made]
    return lines


if __name__ == "__main__":
    print("\n\n".join(generate(random.Random(seed)) for seed in range(3)))
    print("\n".join(self_test()))
    print(f"information per story {nats_per_story():.1f} nats")
