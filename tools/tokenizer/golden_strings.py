"""The generated texts of the tokenizer goldens; tests/support/golden_strings.h generates the same ones.

A text consists of fragments (tests/data/tokenizer/fragments.hex) and random code points, chosen by
a 64-bit linear congruential generator. Only hashes of its ids need to be stored.
"""

MASK = 2**64 - 1
TEXTS = 22000
BLOCKS = 0x110000 // 256


class Lcg:
    def __init__(self, seed):
        self.state = (seed * 0x9E3779B97F4A7C15 + 1) & MASK

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return (self.state >> 33) % n


def code_point(rng):
    """A scalar value; small ones are more frequent, surrogates never occur."""
    bits = 7 + rng.below(14)
    c = rng.below(1 << bits)
    return c + 0x800 if 0xD800 <= c <= 0xDFFF else c if c < 0x110000 else c - 0x100000


def random_text(index, fragments):
    rng = Lcg(index)
    out = b""
    for _ in range(1 + rng.below(12)):
        kind = rng.below(8)
        if kind == 0:
            out += chr(code_point(rng)).encode()
        else:
            times = 1 + (rng.below(40) if kind == 1 else 0)
            out += fragments[rng.below(len(fragments))] * times
    return out


def block_text(block):
    """Every code point of a block of 256, each with a letter, a space, a digit and itself."""
    out = ""
    for c in range(block * 256, block * 256 + 256):
        if not 0xD800 <= c <= 0xDFFF:
            out += f"a{chr(c)} {chr(c)}1{chr(c)}{chr(c)}\n"
    return out.encode()


def texts(fragments):
    for index in range(TEXTS):
        yield random_text(index, fragments)
    for block in range(BLOCKS):
        yield block_text(block)


FRAGMENTS = [
    *"the of and a in Hello world don't I'll THEY'RE we've café naïve élan Ünïcode héllo".split(),
    " the", " of", " a", " Hello", " world", " élan", "ing", "tion", "s", "t", "x", "A", "ZZ",
    "0", "1", "7", "42", "2024", "1234567890", "3.14", "1,000,000", "0x1F", "1e-9", "½", "²", "Ⅻ",
    "٣", "१२", "๕",
    "int main() {\n\treturn 0;\n}", "for (i=0; i<n; ++i)", "def f(x):\n    return x**2\n",
    "std::vector<int>", "a->b", "&&", "||", "!=", "==", "=>", "/*", "*/", "//", "#include <x>",
    "https://example.org/a?b=c&d=%20", "user@example.org", "<div class=\"x\">", "</div>", "{{", "}}",
    "\\n", "\\", "/", "_", "__init__", "$", "€", "£", "+", "-", "—", "–", "…", "«", "»", "“", "”",
    "‘", "’", "'", '"', "`", "```", "(", ")", "[", "]", "{", "}", "<", ">", "|", "^", "~", "@", "#",
    "%", "&", "*", "=", ".", ",", ";", ":", "!", "?", "¿", "¡", "·", "•", "°", "©", "→", "≠", "∑",
    " ", "  ", "   ", "        ", "\n", "\n\n", "\r", "\r\n", "\t", "\t\t", " \n", "\n ", " \t ",
    "\v", "\f", "\x1c", "\x1f", "\x85", "\xa0", "\u1680", "\u180e", "\u2000", "\u2003", "\u200a",
    "\u200b", "\u200c", "\u200d", "\u2028", "\u2029", "\u202f", "\u205f", "\u2060", "\u3000",
    "\ufeff", "\xad", "\0", "\x01", "\x07", "\x1b[0m", "\x7f", "\x80", "\ufffd", "\ue000",
    "你好", "世界", "中", "文字", "今天天气很好，", "。", "、", "《", "》", "！", "？", "龥", "一",
    "\u9fa6", "\u3400", "\U00020000", "\U0002ebf0", "\U00031350", "ひらがな", "カタカナ", "ー", "ｶﾅ",
    "日本語のテキスト", "한국어", "안녕하세요", "가", "힣", "ᄀ", "ＡＢＣ", "１２３", "（", "）", "～",
    "Привет", " мир", "ёлка", "Ελλάδα", "άλφα", "ß", "ẞ", "İ", "ı", "ǅ", "ŉ", "ﬁ", "ſ",
    "مرحبا", " العالم", "لَا", "۱۲۳", "שלום", "עִבְרִית", "हिन्दी", " नमस्ते", "தமிழ்", "ไทย", "ภาษา",
    "ქართული", "հայերեն", "ᏣᎳᎩ", "ⵜⴰⵎⴰⵣⵉⵖⵜ", "ꦗꦮ", "አማርኛ", "བོད", "မြန်မာ", "ខ្មែរ", "ʼ", "ʰ",
    "e\u0301", "\u0301", "\u0308", "\u20dd", "\ufe0f", "a\u0300\u0301\u0302", "\u0488", "\u093e",
    "😀", "😂", "👍🏽", "👩‍👩‍👧‍👦", "🇩🇪", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "❤️", "☃", "🫠", "🩷", "🪿", "\U0001fae9",
    "𝒳", "𝟘", "𐐷", "𓀀", "🀄", "\U0010ffff", "\U000e0041",
    "<|begin|>", "<|end|>", "<|begin|", "<|end|>x", "<|pad|>", "<user>", "<tool>", "</tool>", "WORD",
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<｜User｜>", "<｜Assistant｜>",
    "<｜tool▁calls▁begin｜>", "<|EOT|>", "<think>", "</think>", "<｜", "｜>", "<｜User", "<｜fim▁hole｜>",
    "<｜place▁holder▁no▁0｜>", "<｜place▁holder▁no▁1｜>", "<｜place▁holder▁no▁10｜>",
]

INVALID = [
    b"\x80", b"\xbf", b"\xc0", b"\xc1", b"\xc3", b"\xe2\x82", b"\xe0\x80", b"\xed\xa0\x80", b"\xf0",
    b"\xf0\x9f", b"\xf0\x9f\x98", b"\xf0\x80\x80", b"\xf4\x90\x80\x80", b"\xf5", b"\xff", b"\xfe",
    b"\xc3(", b"\xe2(\xa1", b"\xf0\x9f(",
]


def all_fragments():
    return [f.encode() for f in FRAGMENTS] + INVALID
