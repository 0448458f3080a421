"""Writes src/text/unicode/unicode_supplement.cc: code points that Oniguruma, as Hugging Face's `tokenizers` has
it (0.23.3: Unicode 16), knows and the PCRE2 of this machine (10.42: Unicode 14) does not.

    python3 tools/tokenizer/make_unicode_supplement.py && clang-format -i src/text/unicode/unicode_supplement.cc

Also prints the code points that only PCRE2 knows, which the supplement cannot correct.
"""

import ctypes
import pathlib

from tokenizers import Regex, pre_tokenizers

OUT = pathlib.Path(__file__).resolve().parents[2] / "src/text/unicode/unicode_supplement.cc"
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp".split()
SCRIPTS = ("Han Hangul Hiragana Katakana Bopomofo Latin Greek Cyrillic Arabic Hebrew Thai "
           "Devanagari").split()
TEXT = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF)
PCRE2_UTF, PCRE2_UCP = 0x80000, 0x20000


def oniguruma(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    return {ord(c) for piece, _ in split.pre_tokenize_str(TEXT) for c in piece}


def pcre2(pattern):
    library = ctypes.CDLL("libpcre2-8.so.0")
    for name in ("compile", "match_data_create", "get_ovector_pointer"):
        getattr(library, f"pcre2_{name}_8").restype = ctypes.c_void_p
    error, at = ctypes.c_int(), ctypes.c_size_t()
    code = ctypes.c_void_p(library.pcre2_compile_8(
        pattern.encode(), ctypes.c_size_t(len(pattern)), PCRE2_UTF | PCRE2_UCP, ctypes.byref(error),
        ctypes.byref(at), None))
    assert code.value, pattern
    data = ctypes.c_void_p(library.pcre2_match_data_create_8(1, None))
    subject = TEXT.encode()
    found, start = set(), 0
    while library.pcre2_match_8(code, subject, ctypes.c_size_t(len(subject)), ctypes.c_size_t(start),
                                0, data, None) >= 0:
        pointer = library.pcre2_get_ovector_pointer_8(data)
        begin, start = (ctypes.c_size_t * 2).from_address(pointer)
        found.update(map(ord, subject[begin:start].decode()))
    return found


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def rows(names, spelling):
    out = []
    for name in names:
        theirs, ours = oniguruma(rf"\p{{{name}}}"), pcre2(rf"\p{{{spelling}{name}}}+")
        out += [(first, last, name) for first, last in ranges(theirs - ours)]
        if ours - theirs:
            print(f"{name}: only in PCRE2: {ranges(ours - theirs)}")
    return sorted(out)


def table(name, entries):
    lines = "".join(f'{{0x{first:X}, 0x{last:X}, "{kind}"}},\n' for first, last, kind in entries)
    return f"constexpr UnicodeSupplement {name}[] = {{\n{lines}}};\n\n"


def main():
    OUT.write_text(
        '#include "src/text/unicode/unicode_supplement.h"\n\nnamespace latte {\nnamespace {\n\n'
        + table("kCategories", rows(CATEGORIES, "")) + table("kScripts", rows(SCRIPTS, "sc:"))
        + "}  // namespace\n\n"
        "std::span<const UnicodeSupplement> CategorySupplement() { return kCategories; }\n"
        "std::span<const UnicodeSupplement> ScriptSupplement() { return kScripts; }\n\n"
        "}  // namespace latte\n")


if __name__ == "__main__":
    main()
