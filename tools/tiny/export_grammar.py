"""Writes the story grammar as data, and texts with this parser's verdicts to test other parsers.

The grammar goes where `latte eval` looks for it, beside the model's other files:

    {"rules": {name: [alternative, ...]},      in the notation of grammar.py; the start is "story"
     "tables": {name: {"attributes": [...], "rows": [[text per attribute], ...]}},
     "variables": {name: table},
     "distinct": [[variable, variable, attribute], ...],
     "same": [[variable, attribute, variable, attribute], ...]}

The cases are stories, far stories, and broken stories: {"text", "accepted", "at"}, where "at" is
the furthest character that a refused text was understood up to.
"""

import argparse
import json
import random
import re

import grammar
import story_rules


def grammar_json():
    """The grammar of the stories as a JSON-ready dict; equal tables are written once."""
    rules, variables, distinct, same = story_rules.grammar_data(far=False)
    tables, table_of = {}, {}
    for variable, rows in variables.items():
        table = dict(attributes=list(rows[0]), rows=[list(row.values()) for row in rows])
        if table not in tables.values():
            tables[variable] = table  # a table bears the name of the first variable that uses it
        table_of[variable] = next(name for name, known in tables.items() if known == table)
    return dict(rules=rules, tables=tables, variables=table_of, distinct=distinct, same=same)


def case(text):
    """A text with the verdict of grammar.parse."""
    accepted, why = grammar.parse(text)
    at = None if accepted else int(re.match(r"at character (\d+)", why).group(1))
    return dict(text=text, accepted=accepted, at=at)


def cases(stories, seed=20):
    """`stories` stories, a quarter as many far stories, and two broken versions of each story."""
    rng = random.Random(seed)
    texts = []
    for index in range(stories):
        text = grammar.generate(rng)
        broken = [changed for _, changed in grammar.corruptions(text, rng) if changed != text]
        texts += [text] + rng.sample(broken, 2)
        if index % 4 == 0:
            texts.append(grammar.generate_far(rng))
    return [case(text) for text in texts]


def write_rows(path, head, rows, tail):
    """One row a line, so that a change of one row is a diff of one line."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + ",\n".join(rows) + tail)


def dump(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", help="grammar file to write: story_grammar.json of the model")
    parser.add_argument("--cases", help="test cases to write")
    parser.add_argument("--stories", type=int, default=62, help="stories among the test cases")
    args = parser.parse_args()
    if args.out:
        write_rows(args.out, "{\n", [f"{dump(key)}:{dump(value)}"
                                    for key, value in grammar_json().items()], "\n}\n")
    if args.cases:
        write_rows(args.cases, "[\n", [dump(one) for one in cases(args.stories)], "\n]\n")


if __name__ == "__main__":
    main()
