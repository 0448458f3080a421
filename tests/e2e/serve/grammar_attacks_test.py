#!/usr/bin/env python3
"""Hostile grammars: each is refused by name or completes, and a usual request at the same time completes.
Usage: grammar_attacks_test.py LATTE_BINARY"""
import sys
import threading
import unittest

from hostile_grammars import DEAR, REFUSED, USUAL
from server import Server

BINARY = sys.argv.pop(1)


def ask(server, field, value, tokens=8):
    body = {"model": "tiny", "prompt": "A duck", "max_tokens": tokens, "temperature": 1, "seed": 1}
    return server.post("/v1/completions", {**body, field: value} if field else body, timeout=300)


class GrammarAttacksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(BINARY)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_what_costs_too_much_is_refused_by_name(self):
        for name, (field, value, said) in REFUSED.items():
            with self.subTest(name):
                status, _, answer = ask(self.server, field, value)
                self.assertEqual(status, 400, answer)
                self.assertIn(said, answer["error"]["message"])
                self.assertIn(f"'{field}'", answer["error"]["message"])

    def test_usual_ones_are_answered(self):
        for name, (field, value) in USUAL.items():
            with self.subTest(name):
                status, _, answer = ask(self.server, field, value)
                self.assertEqual(status, 200, answer)

    def test_a_usual_request_completes_beside_dear_ones(self):
        answers = {}

        def work(name, field, value):
            answers[name] = ask(self.server, field, value, tokens=40)

        threads = [threading.Thread(target=work, args=(name, *one)) for name, one in DEAR.items()]
        for thread in threads:
            thread.start()
        alone = [ask(self.server, None, None) for _ in range(20)]
        for thread in threads:
            thread.join()
        self.assertEqual({status for status, _, _ in alone}, {200})
        self.assertEqual(len({str(answer["choices"][0]["text"]) for _, _, answer in alone}), 1)
        for name, (status, _, answer) in answers.items():
            self.assertIn(status, (200, 400), (name, answer))


if __name__ == "__main__":
    unittest.main(verbosity=2)
