"""Markdown on the web page: what it looks like, while it streams, and when libraries are missing."""
import pathlib
import tempfile

from fake_server import FakeServer, pieces
from page_case import PageCase, main

ANSWER = r"""# Title

Some **bold**, *emphasis*, ~~gone~~, `code`, a [link](https://example.org/a?b=1&c=2) and https://example.org/x.
The second line, with &lt;entities&gt; and a price of $5 to $10.

- one
- two
  1. inner
  2. again
- [x] done

> quoted

| name | value |
|------|------:|
| a    | `1`   |
| b    | $x^2$ |

```python
def f(x):
	return "<b>"  # comment
```

Inline \(a_1 + b\) and $\frac{1}{2}$, then

$$
\int_0^1 x^2\,dx
= \frac13
$$

\[ \sum_{i=1}^{n} i \]

<div onclick="alert(1)">*raw* HTML</div>

![picture](https://example.org/p.png)

End[ref].

[ref]: https://example.org/ref
"""


class Markdown(PageCase):
    def test_every_form(self):
        self.open()
        self.script(*pieces("\n  " + ANSWER, 7), "stop")
        self.say("Hi")
        self.browser.until("return document.querySelectorAll('.answer math').length === 5")
        self.assertEqual(self.tags(".answer h3.depth1"), ["Title"])
        self.assertEqual([self.tags(tag) for tag in ("strong", "em", "del")], [["bold"], ["emphasis", "raw"], ["gone"]])
        self.assertEqual(self.tags(".answer p code, .answer td code"), ["code", "1"])
        links = self.last("return [...last.querySelectorAll('a')].map((a) => [a.textContent, a.href, a.target, a.rel])")
        safe = ["_blank", "noopener noreferrer"]
        self.assertEqual(links, [["link", "https://example.org/a?b=1&c=2", *safe], ["https://example.org/x", "https://example.org/x", *safe],
                                 ["image: picture", "https://example.org/p.png", *safe], ["ref", "https://example.org/ref", *safe]])
        self.assertIn("<entities> and a price of $5 to $10.", self.tags("p")[0])
        self.assertEqual(self.tags("ol li"), ["inner", "again"])
        self.assertEqual(self.tags(".task"), ["☑ done"])
        self.assertEqual(self.tags("blockquote"), ["quoted"])
        self.assertEqual(self.tags("th"), ["name", "value"])
        self.assertEqual(self.last("return [...last.querySelectorAll('td')].map((e) => e.className)"), ["", "right", "", "right"])
        self.assertEqual(self.tags("figcaption span"), ["python"])
        self.assertEqual(self.tags("pre code"), ['def f(x):\n\treturn "<b>"  # comment'])
        self.browser.until("return document.querySelectorAll('pre .t-keyword').length === 2")
        self.assertEqual(self.tags("pre .t-string, pre .t-comment"), ['"<b>"', "# comment"])
        self.assertIn('<div onclick="alert(1)">raw HTML</div>', self.tags("p"))
        self.assertEqual(self.last("return last.querySelectorAll('math[display=block]').length"), 2)
        self.assertEqual(self.last("return last.querySelectorAll('[style], img, div[onclick], annotation').length"), 0)
        self.no_complaints()
        self.shot("markdown")

    def test_what_the_user_writes_stays_as_it_is(self):
        self.open()
        self.say("# no *heading* $x${shift}{enter}{shift}next")
        self.assertEqual(self.browser.text(".message:first-child .said"), "# no *heading* $x$\nnext")

    def test_copies(self):
        self.open()
        self.browser.run("window.copied = []; navigator.clipboard.writeText = async (text) => window.copied.push(text)")
        self.script(*pieces("  Use **this**:\n```\na\tb\n```\n", 4), "stop")
        self.say("Hi")
        self.browser.click(".answer .copy")
        self.browser.click(".message:last-child .copy-all")
        self.browser.click(".message:first-child .copy-all")
        self.assertEqual(self.browser.run("return window.copied"), ["a\tb", "Use **this**:\n```\na\tb\n```", "Hi"])
        self.assertEqual(self.browser.text(".answer .copy"), "Copied")
        self.browser.until("return document.querySelector('.answer .copy').textContent === 'Copy'")

    def test_copies_without_a_clipboard(self):
        self.open()
        self.browser.run("navigator.clipboard.writeText = () => Promise.reject(new Error()); window.copied = '';"
                         "document.addEventListener('copy', () => window.copied = document.activeElement.value)")
        self.script(*pieces("An answer", 4), "stop")
        self.say("Hi")
        self.browser.click(".message:last-child .copy-all")
        self.browser.until("return window.copied === 'An answer'")
        self.assertEqual(self.browser.run("return document.activeElement.textContent"), "Copied")

    def test_nothing_flickers_while_it_streams(self):
        self.open()
        # Elements that come and go, and marks that are seen before they end.
        self.browser.run("""window.gone = [];
            new MutationObserver((all) => { for (const m of all) for (const n of m.removedNodes)
              if (n.nodeType === 1 && m.target.closest?.('.answer') && !n.matches('span.formula *, code, math, .open-formula')) window.gone.push(n.outerHTML);
            }).observe(document.getElementById('messages'), {childList: true, subtree: true});""")
        text = ("Para with **bold words**, *some emphasis*, `a code` and [a link](https://example.org/long).\n\nText\n- a\n- b **c d**\n  - e\n\n"
                "Setext?\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx = 1\ny = 2\n```\n\n1. one\n2. two\n\nDone.")
        seen = []
        self.script(*[part for piece in pieces(text, 2) for part in (piece, 0.02)], "stop")
        self.browser.type("#input", "Hi{enter}")
        while True:
            now = self.browser.run("return [document.querySelector('.answer')?.textContent ?? '', document.getElementById('messages').ariaBusy]")
            seen.append(now[0])
            if now[1] == "false" and now[0]:
                break
        self.answered()
        self.assertEqual("\n".join(self.browser.run("return window.gone")), "")
        for mark in ("**", "](", "| a", "|--", "```", "`a"):
            self.assertEqual([shown for shown in seen if mark in shown], [], mark)
        self.assertGreater(len(set(seen)), 10)

    def test_a_block_that_has_ended_keeps_its_elements(self):
        self.open()
        self.script(*pieces("First *one*.\n\n```js\nlet a = 1;\n```\n\nLast", 5), 1, *pieces(" one and more text\n\nAnd one.", 3), "stop")
        self.browser.type("#input", "Hi{enter}")
        self.browser.until("const a = document.querySelector('.answer'); return a && a.textContent.includes('Last') && (window.kept = [...a.children])")
        self.answered()
        self.assertEqual(self.last("return [...last.querySelector('.answer').children].slice(0, 3).map((e, i) => e === window.kept[i])"), [True] * 3)

    def test_a_link_shows_where_it_leads(self):
        self.open()
        cases = {
            "[https://bank.example](https://evil.example/x)": "https://bank.example (evil.example)",
            "[www.bank.example](https://bank.example/)": "www.bank.example",
            "[bank.example](https://bank.example.evil.test/)": "bank.example (bank.example.evil.test)",
            "https://bank.example@evil.example": "https://bank.example@evil.example (evil.example)",
            "[read it](https://fine.example)": "read it",
            "[b\u202eank.example](https://evil.example)": "b\u202eank.example (evil.example)",
            "[x](javascript:alert(1))": "x",
            "[x](/relative)": "x",
            "[me](mailto:me@fine.example)": "me",
        }
        self.script({"content": "\n\n".join(cases)}, "stop")
        self.say("Hi")
        self.assertEqual(self.tags(".answer p"), list(cases.values()))
        hrefs = self.last("return [...last.querySelectorAll('a')].map((a) => new URL(a.href).protocol)")
        self.assertEqual(hrefs, ["https:"] * 6 + ["mailto:"])


class WithoutLibraries(PageCase):
    def test_text_is_plain(self):
        with tempfile.TemporaryDirectory() as folder:
            server = FakeServer(pathlib.Path(folder) / "libraries", root=folder)
            self.addCleanup(server.stop)
            self.open(server)
            server.answer = lambda body: [*pieces("# A *b* $x$\n\n```py\nx = 1\n```\nend", 3), "stop"]
            self.say("Hi")
            self.assertEqual(self.tags(".answer p"), ["# A *b* $x$", "end"])
            self.assertEqual(self.tags(".answer pre"), ["x = 1"])
            self.no_complaints()


if __name__ == "__main__":
    main()
