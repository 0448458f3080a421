"""Writes the story grammar as data, and texts with known verdicts that test its parser.

The grammar goes where `latte eval` looks for it, beside the model's other files:

    {"rules": {name: [alternative, ...]},      in the notation of grammar.py; the start is "story"
     "tables": {name: {"attributes": [...], "rows": [[text per attribute], ...]}},
     "variables": {name: table},
     "distinct": [[variable, variable, attribute], ...],
     "same": [[variable, attribute, variable, attribute], ...]}

The cases are stories and, of each, four broken versions: {"text", "accepted", "at"}, where "at" is
the byte of a refused text at which the error begins. No parser decides: the writer of a story
records its pieces, so the place of an error that is then made is known.
"""

import argparse
import json
import random

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


def node_texts(nodes):
    """The texts of compiled nodes, all choices included."""
    for kind, *rest in nodes:
        if kind == "text":
            yield rest[0]
        elif kind == "choice":
            for branch in rest[0]:
                yield from node_texts(branch)


def all_texts(language):
    """Every text that a piece may have."""
    texts = {text for alternatives in language.rules.values() for nodes in alternatives
             for text in node_texts(nodes)}
    return texts | {word for rows in language.variables.values() for row in rows
                    for word in row.values()}


def rows_told(language, pieces, variable):
    """The rows of the variable that agree with every word that the pieces say of it."""
    told = [piece for piece in pieces if piece.variable == variable]
    return [row for row in language.variables[variable]
            if all(row[piece.attribute] == piece.text for piece in told)]


def possible_words(language, pieces, slot):
    """The words that `slot` may have after the pieces, or more than these."""
    rows = rows_told(language, pieces, slot.variable)
    for attribute, other, other_attribute, equal in language.checks[slot.variable]:
        values = {row[other_attribute] for row in rows_told(language, pieces, other)}
        rows = [row for row in rows if any((row[attribute] == value) == equal for value in values)]
    return {row[slot.attribute] for row in rows}


def wrong_words(language, pieces):
    """(variable, attribute) -> [(index of the piece, words that are wrong there)]."""
    wrong = {}
    for index, piece in enumerate(pieces):
        if piece.variable:
            words = {row[piece.attribute] for row in language.variables[piece.variable]}
            words -= possible_words(language, pieces[:index], piece)
            if words:
                wrong.setdefault((piece.variable, piece.attribute), []).append(
                    (index, sorted(words)))
    return wrong


def text_of(pieces):
    return "".join(piece.text for piece in pieces)


def refused(before, rest):
    """The case of a text whose error begins after the pieces `before`."""
    text = text_of(before)
    return dict(text=text + rest, accepted=False, at=len(text.encode()))


def cut_short(pieces, texts, rng):
    """The text cut inside a piece. No shorter text of the grammar begins that piece. Another
    derivation must not read on into it either; `lab_test` fails if a changed grammar allows that."""
    cuttable = [index for index, piece in enumerate(pieces) if len(piece.text) > 1 and not any(
        piece.text.startswith(text) for text in texts - {piece.text})]
    index = rng.choice(cuttable)
    text = pieces[index].text
    return refused(pieces[:index], text[:rng.randrange(1, len(text))])


def with_a_wrong_word(language, pieces, rng):
    """The text with a word in a slot that contradicts what was said before. Every story has such a
    slot."""
    wrong = wrong_words(language, pieces)
    index, words = rng.choice(wrong[rng.choice(sorted(wrong))])
    return refused(pieces[:index], rng.choice(words) + text_of(pieces[index + 1:]))


def with_a_spoiled_piece(pieces, rng):
    """The text with a character in the middle that the grammar does not have."""
    index = rng.choice([index for index, piece in enumerate(pieces[1:-1], 1) if not piece.variable])
    return refused(pieces[:index], "#" + text_of(pieces[index:])[1:])


def cases(stories, seed=20):
    """`stories` stories and four broken versions of each."""
    language = grammar.stories()
    texts = all_texts(language)
    rng, errors = random.Random(seed), random.Random(f"{seed} errors")
    out = []
    for _ in range(stories):
        pieces = language.derive(rng)
        out += [dict(text=text_of(pieces), accepted=True, at=None),
                refused(pieces, " The end."),
                cut_short(pieces, texts, errors),
                with_a_wrong_word(language, pieces, errors),
                with_a_spoiled_piece(pieces, errors)]
    return out


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
