"""How run_blocks.py reads pages. Usage: blocks_test.py; needs bash."""
import unittest

from blocks import blocks_of, commands_of, lacks_language

PAGE = """\
Text.
<!-- not run: needs a network -->
```sh
make
```
```text
make
```
  ````sh
a |
  b
cat <<END
x
END
c \\
  d   # why
# only a comment
````
```
latte run
```
"""


class Blocks(unittest.TestCase):
    def test_blocks_have_line_language_and_reason(self):
        found = [(block.line, block.language, block.not_run) for block in blocks_of("page", PAGE)]
        self.assertEqual(found, [(3, "sh", "needs a network"), (6, "text", ""), (9, "sh", ""), (19, "", "")])

    def test_commands_end_where_bash_says(self):
        commands = commands_of(blocks_of("page", PAGE)[2])
        self.assertEqual(commands, [(10, "a |\n  b\n"), (12, "cat <<END\nx\nEND\n"), (15, "c \\\n  d   # why\n")])

    def test_commands_without_a_language_are_seen(self):
        self.assertEqual([lacks_language(block) for block in blocks_of("page", PAGE)], [False, False, False, True])

    def test_what_is_not_finished_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "page:2: .*not closed"):
            blocks_of("page", "x\n```sh\nlatte list\n")
        with self.assertRaisesRegex(ValueError, "page:2: .*unfinished"):
            commands_of(blocks_of("page", "```sh\nlatte list |\n```\n")[0])


if __name__ == "__main__":
    unittest.main()
