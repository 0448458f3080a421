#!/usr/bin/env python3
"""Answers to drawn JSON schemas, checked by the package jsonschema: what a schema says holds, or the schema is refused by name.
Usage: schemas_test.py LATTE_BINARY [SCHEMAS ANSWERS [SEED]]; 500 schemas with 20 answers each take some minutes."""
import collections
import json
import re
import sys
import threading

from drawn_schemas import DRAW, REFUSED, draw_schemas, keywords_in
from server import Server

try:
    import jsonschema
except ImportError:
    print("not installed: python3-jsonschema")
    sys.exit(0)

ASK = [{"role": "user", "content": "Tell me about a duck in JSON."}]
AT_ONCE = 4
LEAST_ENDED = 0.9


def no_constant(name):
    raise ValueError(f"{name} is no JSON")


class Tally:
    def __init__(self):
        self.lock = threading.Lock()
        self.schemas = self.refused = self.answers = self.ended = 0
        self.wrong = []
        self.open = collections.Counter()
        self.reasons = collections.Counter()
        self.taken = collections.Counter()  # keyword -> schemas that were answered

    def refuse(self, schema, message):
        with self.lock:
            self.refused += 1
            named = re.findall(r"'([A-Za-z$]+)'", message)
            named = [name for name in named if name in DRAW or name in REFUSED or name == "minProperties"]
            if not named:
                self.wrong.append(f"refused without a name: {message}\n  {json.dumps(schema)}")
            self.reasons[re.sub(r"^.*?schema: ", "", message)[:70]] += 1

    def check(self, schema, validator, choice):
        with self.lock:
            self.answers += 1
            if choice["finish_reason"] == "length":
                self.open[json.dumps(schema)] += 1
                return
            self.ended += 1
            text = choice["message"]["content"]
            try:
                validator.validate(json.loads(text, parse_constant=no_constant))
            except (ValueError, jsonschema.ValidationError) as error:
                self.wrong.append(f"{str(error).splitlines()[0]}\n  {text}\n  {json.dumps(schema)}")


def ask(server, schema, seed, count, tally):
    body = {"model": "tiny", "messages": ASK, "temperature": 1.5, "seed": seed, "n": count, "max_tokens": 400,
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}}
    status, _, answer = server.post("/v1/chat/completions", body, timeout=300)
    if status == 400:
        tally.refuse(schema, answer["error"]["message"])
        return
    assert status == 200, (status, answer, schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    for choice in answer["choices"]:
        tally.check(schema, validator, choice)
    with tally.lock:
        tally.schemas += 1
        tally.taken.update(keywords_in(schema))


def run(binary, schemas, answers, seed):
    tally = Tally()
    todo = list(enumerate(schema for schema, _ in draw_schemas(schemas, seed)))
    drawn = collections.Counter(key for _, schema in todo for key in keywords_in(schema))
    failures = []

    def work():
        while True:
            with tally.lock:
                if not todo:
                    return
                i, schema = todo.pop(0)
            try:
                ask(server, schema, i, answers, tally)
            except Exception as error:  # so that the other threads end, too
                failures.append(error)
                return

    with Server(binary) as server:
        threads = [threading.Thread(target=work) for _ in range(AT_ONCE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return tally, drawn


def main():
    binary, numbers = sys.argv[1], [int(number) for number in sys.argv[2:]]
    schemas, answers = numbers[:2] if numbers else (25, 4)
    seed = numbers[2] if len(numbers) > 2 else 1
    tally, drawn = run(binary, schemas, answers, seed)
    share = tally.ended / max(1, tally.answers)
    print(f"{schemas} schemas: {tally.schemas} answered, {tally.refused} refused by name")
    print(f"{tally.answers} answers: {tally.ended} ended ({share:.1%}), {len(tally.wrong)} wrong")
    print("schemas with a keyword, drawn and answered:", ", ".join(f"{key} {drawn[key]} {tally.taken[key]}" for key in DRAW))
    if len(numbers):
        for reason, count in tally.reasons.most_common():
            print(f"  refused {count}: {reason}")
        for text, count in tally.open.most_common(12):
            print(f"  not ended {count}: {text[:200]}")
    for text in tally.wrong[:20]:
        print("WRONG", text)
    rare = [key for key in DRAW if drawn[key] < 20] if schemas >= 500 else []
    if rare:
        print("too rare:", rare)
    return 1 if tally.wrong or rare or share < LEAST_ENDED or tally.schemas < schemas / 2 else 0


if __name__ == "__main__":
    sys.exit(main())
