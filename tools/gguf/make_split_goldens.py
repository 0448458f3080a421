"""Writes tests/data/gguf_splits.json: how the patterns of published tokenizers split generated texts.

    LATTE_TEST_TOKENIZER_DIR=… python3 tools/gguf/make_split_goldens.py

Needs `regex` and `unicodedata2` 16.0.0. The patterns are run by `regex`, independently of PCRE2. Hashes of the pieces'
lengths are stored, one for every thousand texts. Texts with code points that `regex` knows from a newer Unicode than 16,
which `tokenizers` and Latte know, are left out.
"""
import json
import os
import pathlib
import sys

import regex
import unicodedata2

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/tokenizer"))
import golden_strings  # noqa: E402

TEXTS = 11_000
BLOCK = 1_000
CASES = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
REST = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
ONE = r"[^\r\n\p{L}\p{N}]?"
KIMI_UPPER, KIMI_LOWER = (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]")


def of_folder(folder):
    steps = json.loads((folder / "tokenizer.json").read_text())["pre_tokenizer"]["pretokenizers"]
    assert all(s["type"] != "Digits" or s["individual_digits"] for s in steps)
    return [s["pattern"]["Regex"] if s["type"] == "Split" else r"\p{N}" for s in steps if s["type"] != "ByteLevel"]


def patterns():
    return {
        "deepseek-llm": of_folder(ROOT / "tests/data/tokenizer/v2_style"),
        "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-\ud7ff]+", r"\p{N}"],
        "deepseek-v3": of_folder(pathlib.Path(os.environ["LATTE_TEST_TOKENIZER_DIR"])),
        "kimi-k2": [  # from the model's tokenization_kimi.py
            rf"(?V1)[\p{{Han}}]+|{ONE}{KIMI_UPPER}*{KIMI_LOWER}+{CASES}?|{ONE}{KIMI_UPPER}+{KIMI_LOWER}*{CASES}?"
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + REST],
        "glm4": [CASES + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + REST],
        "tekken": [f"{ONE}{UPPER}*{LOWER}+|{ONE}{UPPER}+{LOWER}*" + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + REST],
        "youtu": ["[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+",
                  f"{ONE}{UPPER}*{LOWER}+{CASES}?|{ONE}{UPPER}+{LOWER}*{CASES}?"
                  r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + REST],
        "gigachat": [r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"],
    }


def isolated(pattern, pieces):
    for piece in pieces:
        done = 0
        for match in pattern.finditer(piece):
            if match.end() == match.start():
                continue
            if done < match.start():
                yield piece[done:match.start()]
            yield match.group()
            done = match.end()
        if done < len(piece):
            yield piece[done:]


def is_newer(c, known={}):
    if c not in known:
        known[c] = not regex.match(r"\p{%s}" % unicodedata2.category(c), c)
    return known[c]


def add_to_hash(value, number):
    return ((value ^ number) * 0x100000001B3) % 2**64


def main():
    assert unicodedata2.unidata_version == "16.0.0"
    fragments = golden_strings.all_fragments()
    texts = [golden_strings.random_text(i, fragments).decode(errors="replace") for i in range(TEXTS)]
    skipped = [i for i, text in enumerate(texts) if any(map(is_newer, text))]
    left_out = set(skipped)
    splits = {}
    for name, steps in patterns().items():
        compiled = [regex.compile(step) for step in steps]
        splits[name] = []
        for begin in range(0, TEXTS, BLOCK):
            value = 0xCBF29CE484222325
            for i in range(begin, begin + BLOCK):
                if i in left_out:
                    continue
                pieces = [texts[i]]
                for pattern in compiled:
                    pieces = isolated(pattern, pieces)
                for piece in pieces:
                    value = add_to_hash(value, len(piece.encode()))
                value = add_to_hash(value, 0)
            splits[name].append(f"{value:016x}")
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(hashes)}" for name, hashes in splits.items())
    out = ROOT / "tests/data/gguf_splits.json"
    out.write_text(f'{{"texts": {TEXTS}, "block": {BLOCK}, "skipped": {json.dumps(skipped)},\n"splits": {{\n{lines}\n}}}}\n')
    print(f"{out}: {TEXTS - len(skipped)} texts, {len(skipped)} left out, {len(splits)} ways to split")


if __name__ == "__main__":
    main()
