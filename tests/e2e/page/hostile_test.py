"""Answers that attack the web page: nothing runs, nothing loads, nothing is reported, and the page answers afterwards."""
import random
import time

from page_case import READY, PageCase, main

SCRIPT = "window.evil = 1"
ANSWER_SECONDS = 3  # for the page to answer after an attack, on a machine that is busy
WHOLE_SECONDS = 20  # for all of a hostile answer


def markup():
    tags = ["<script>{}</script>", "<img src=x onerror='{}'>", "<svg onload='{}'></svg>", "<svg><script>{}</script></svg>",
            "<body onload='{}'>", "<iframe src='javascript:{}'></iframe>", "<iframe srcdoc='<script>parent.{}</script>'></iframe>",
            "<object data='javascript:{}'></object>", "<embed src='javascript:{}'>", "<details open ontoggle='{}'>x</details>",
            "<video><source onerror='{}'></video>", "<input autofocus onfocus='{}'>", "<a href='javascript:{}'>x</a>",
            "<form action='javascript:{}'><button>x</button></form>", "<math><mtext><script>{}</script></mtext></math>",
            "<style>body {{ display: none }} /* {} */</style>", "<link rel=stylesheet href='https://evil.example/{}.css'>",
            "<base href='https://evil.example/{}'>", "<meta http-equiv=refresh content='0; url=https://evil.example/{}'>",
            "<template><script>{}</script></template>", "<noscript><p title='</noscript><img src=x onerror={}>'></noscript>",
            "<div style='position: fixed; inset: 0; background: url(https://evil.example/{})'>", "<!--><script>{}</script>-->",
            "<![CDATA[<script>{}</script>]]>", "<?xml-stylesheet href='javascript:{}'?>", "<x onclick='{}' id=input name=state>x</x>"]
    places = ["{}", "# {}", "- {}", "> {}", "| {} |\n|---|\n| {} |"]
    return [place.replace("{}", tag.replace("{}", SCRIPT).replace("{{", "{").replace("}}", "}")) for tag in tags for place in places[:3]]


def links():
    spellings = ["javascript:", "JaVaScRiPt:", "java\tscript:", "java\nscript:", " javascript:", "\x01javascript:", "javascript&colon;",
                 "&#106;avascript:", "&#x6A;avascript:", "javascript&#58;", "jav&#x09;ascript:", "%6Aavascript:", "data:text/html,<script>",
                 "DATA:text/html;base64,PHNjcmlwdD4=", "vbscript:", "VbScRiPt:", "file:///etc/passwd", "blob:x", "about:blank", "view-source:x",
                 "feed:javascript:", "\u2028javascript:", "//evil.example", "\\\\evil.example", "https:evil.example"]
    forms = ["[x]({}{})", "[x](<{}{}>)", "<{}{}>", "![x]({}{})", "[x][r]\n\n[r]: {}{}"]
    return [form.replace("{}", spelling, 1).replace("{}", SCRIPT.replace(" ", ""), 1) for spelling in spellings for form in forms[:3]]


def formulas():
    bombs = [r"\def\a{\a\a}\a", r"\def\a#1{\a{#1#1}}\a{x}", r"\rule{9999em}{9999em}", r"\kern{-9999em}x", r"\htmlStyle{color:red}{x}", r"\href{javascript:" + SCRIPT + "}{x}",
             r"\url{javascript:" + SCRIPT + "}", r"\includegraphics{https://evil.example/x}", r"\htmlClass{off-screen}{x}", r"\htmlData{key=1}{x}",
             r"\fcolorbox{red}{url(https://evil.example)}{x}", r"\color{red;background:url(https://evil.example)}x", r"\fcolorbox{red}{blue}{x}",
             r"\unknown{x}", "{" * 900, r"\frac" * 300, r"\left(" * 300, r"\sqrt{" * 300, "x^" * 900, r"\begin{matrix}" + "a&" * 400, r"\text{<script>" + SCRIPT + "</script>}",
             r"\raisebox{999em}{x}", r"\underbrace" * 200, r"\overline{" * 400, r"\bold{x}\error", r"\char`<", r"\\[9999em]x", r"\hspace{9999em}"]
    return [f"$${bomb}$$ and \\({bomb}\\)" for bomb in bombs]


def shapes():
    deep = 10_000
    big = {"quotes": ">" * deep + " x", "spaced quotes": "> " * deep + "x", "list": "- " * deep + "x", "numbers": "1. " * deep + "x",
           "indented": "\n".join(" " * (2 * i % 1000) + "- x" for i in range(2000)), "stars": "*a **b " * 20_000, "lines": "a_b_ " * 20_000,
           "brackets": "[" * 100_000, "images": "![](" * 30_000, "ticks": "`" * 50_000 + "x", "fences": "```\n~~~\n" * 20_000, "open fence": "```\n" + "x\n" * 100_000,
           "table": "|a|b|\n|-|-|\n" + "|x|y|\n" * 50_000, "wide table": "|a" * 3000 + "|\n" + "|-" * 3000 + "|\n" + "|x" * 3000 + "|", "one line": "x" * 1_000_000,
           "words": "word " * 200_000, "emoji": "👨‍👩‍👧‍👦" * 10_000, "marks": "x" + "\u0301" * 100_000, "paragraphs": "a\n\n" * 100_000, "items": "- a\n" * 100_000,
           "rules": "---\n" * 50_000, "headings": "# a\n" * 50_000, "setext": "a\n=\n" * 50_000, "dollars": "$" * 100_000, "prices": "$a" * 50_000,
           "math": "$x$ " * 20_000, "spaces": " " * 200_000 + "x", "tabs": "\t" * 100_000 + "x", "newlines": "\n" * 200_000 + "x", "returns": "\r\r\n" * 50_000,
           "escapes": "\\" * 100_000, "entities": "&amp;" * 50_000, "html": "<a " * 50_000, "comments": "<!--" * 50_000, "tildes": "~~a" * 30_000,
           "addresses": "http://a.b/" * 20_000, "mails": "a@b.c " * 30_000, "definitions": "[a]: http://b\n" * 20_000, "references": "[a][b]" * 30_000,
           "code line": "```js\n" + "x(" * 200_000 + "\n```", "code": "```cpp\n" + "int a = 1; // x\n" * 50_000 + "```", "regex": "```js\n" + "/(" * 9_000 + "\n```",
           "bidi": "\u202eevil\u202d \u2066x\u2069 \u200f" * 2000, "control": "".join(map(chr, range(32))) * 200 + "\x7f\x80\x9f\ufffe\uffff\ufdd0", "nul": "\0" * 10_000}
    small = ["**", "*", "`", "```", "[", "![", "[a](", "$", "$$", "\\(", "\\[", "|", "|a|\n|-", "<", "<!--", "<a", "~~", "> ", "- ", "1.", "#", "&#", "&#x110000;", "&#0;", "[a]:",
             "[__proto__]: https://x.example\n[constructor][] [__proto__]", "```__proto__\nx\n```", "```constructor\nx\n```", "```toString x\ny\n```", "\ud83d\ude00"]
    return list(big.values()) + small


def mixtures(count):
    """Random pieces one after another, from a fixed seed."""
    draw = random.Random(1)
    parts = ["*", "**", "_", "`", "```\n", "\n", "\n\n", "- ", "> ", "| a |", "|---|", "$", "$$", "\\(", "\\)", "[x](", ")", "<b>", "&lt;", "# ", "  ", "\t", "text", "![", "]", "1. ", "~~~", "\r\n",
             "javascript:alert(1)", "<script>", "\u202e", "https://e.example"]
    return ["".join(draw.choices(parts, k=400)) for _ in range(count)]


class Hostile(PageCase):
    def hostile(self, answers):
        self.open()
        self.browser.run("document.getElementById('keep-nothing').click()")
        slowest = (0, "")
        for text in answers:
            size = max(1, len(text) // 20)
            self.script(*[{"content": text[at:at + size]} for at in range(0, len(text), size)], "stop")
            sent = time.monotonic()
            self.browser.run("document.getElementById('new').click(); const e = document.getElementById('input'); e.value = 'x';"
                             "document.getElementById('composer').requestSubmit()")
            self.browser.until("return document.querySelectorAll('.message').length === 2 && document.getElementById('messages').ariaBusy === 'false'")
            start = time.monotonic()
            self.browser.frames(2)
            took = time.monotonic() - start
            slowest = max(slowest, (took, text[:60]))
            found = self.browser.run("""const answer = document.querySelector('.answer');
                return [window.evil, [...answer.querySelectorAll('*')].filter((e) => !(e.matches('p, h3, h4, h5, h6, ul, ol, li, blockquote, hr, table, thead, tbody, tr, th, td,'
                    + 'div.table, figure.code, figcaption, button.copy, pre, code, span, strong, em, del, br, a') || e.namespaceURI.endsWith('MathML'))
                    || [...e.attributes].some((a) => a.name === 'style' || a.name.startsWith('on') || a.name === 'src' || a.name === 'id')).map((e) => e.outerHTML.slice(0, 200)),
                  [...answer.querySelectorAll('a')].filter((a) => !/^(https?|mailto):/.test(a.protocol) || a.target !== '_blank').map((a) => a.href)]""")
            self.assertEqual(found, [None, [], []], text[:200])
            self.assertLess(took, ANSWER_SECONDS, text[:60])
            self.assertLess(start - sent, WHOLE_SECONDS, text[:60])
        self.browser.until(READY)
        self.no_complaints()
        print(f"{len(answers)} hostile answers; after the slowest ({slowest[1]!r:.40}) the page answers in {slowest[0]:.2f} s", flush=True)

    def test_markup(self):
        self.hostile(markup())

    def test_links(self):
        self.hostile(links())

    def test_formulas(self):
        self.hostile(formulas())

    def test_shapes(self):
        self.hostile(shapes())

    def test_many_marks_cost_little_while_they_come(self):
        self.open()
        self.browser.run("window.busy = 0; new PerformanceObserver((list) => { for (const e of list.getEntries()) window.busy += e.duration }).observe({type: 'longtask'})")
        for text in ("*a **b " * 1100, "__a " * 1900, "[" * 7500):
            self.script(*[part for at in range(0, len(text), 250) for part in ({"content": text[at:at + 250]}, 0.05)], "stop")
            self.say("Hi")
        self.assertLess(self.browser.run("return window.busy"), 5000)

    def test_mixtures(self):
        self.hostile(mixtures(40))


if __name__ == "__main__":
    main()
