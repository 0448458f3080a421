"""A small grammar engine that writes texts. `latte eval` judges them (lab/eval/story_grammar.h).

Notation of a rule (plain strings, see story_rules.py):

    {hero.name}   a slot: attribute `name` of the table row bound to the variable `hero`
    <lost>        another rule
    [a|b|]        a choice, each branch equally likely; branches may be empty and may nest

A variable is bound to one row of its table where it is first met; every later slot of that
variable must agree with that row, which is how pronouns, objects, and places stay consistent.
"""

import collections
import functools
import math
import random
import re

TOKEN = re.compile(r"\{(\w+)\.(\w+)\}|<(\w+)>|([\[|\]])")

# A part of a text: what a text node or a slot wrote. variable, attribute: of a slot, else None.
Piece = collections.namedtuple("Piece", "text variable attribute", defaults=(None, None))


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

    def derive(self, rng, rule="story"):
        """The pieces of one random text of `rule`, in order. rng: random.Random."""
        pieces = []
        self._write(rng.choice(self.rules[rule]), rng, {}, pieces)
        return pieces

    def generate(self, rng, rule="story"):
        """One random text of `rule`. rng: random.Random."""
        return "".join(piece.text for piece in self.derive(rng, rule))

    def _write(self, nodes, rng, bound, pieces):
        for node in nodes:
            kind = node[0]
            if kind == "text":
                pieces.append(Piece(node[1]))
            elif kind == "slot":
                variable, attribute = node[1], node[2]
                if variable not in bound:
                    rows = self.variables[variable]
                    if self.checks[variable]:
                        rows = [row for row in rows if self._fits(variable, row, bound)]
                    bound[variable] = rng.choice(rows)
                pieces.append(Piece(bound[variable][attribute], variable, attribute))
            elif kind == "rule":
                self._write(rng.choice(self.rules[node[1]]), rng, bound, pieces)
            else:
                self._write(rng.choice(node[1]), rng, bound, pieces)


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


if __name__ == "__main__":
    print("\n\n".join(generate(random.Random(seed)) for seed in range(3)))
    print(f"information per story {nats_per_story():.1f} nats")
