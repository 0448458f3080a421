"""Writes tests/data/tokenizer/: the output of Hugging Face's `tokenizers` for generated texts.

    python3 tools/tokenizer/make_goldens.py [--deepseek FOLDER]

needs `tokenizers`, `tiktoken` and `sentencepiece` (the goldens were made with 0.23.3, 0.14.0 and
0.2.3) and rewrites

    fragments.hex        the fragments of the generated texts, one per line
    v2_style/            a small tokenizer with the pre-tokenizer of DeepSeek-V2, trained here
    kimi_style/          a small tiktoken.model with the pattern of Kimi-K2, trained here; ids from
                         `tiktoken`
    llama_style/         a small tokenizer of SentencePiece's kind, in the form of MiniCPM3, trained
                         here with `sentencepiece`
    NAME.hash            two 32-bit FNV-1a hashes per text: ids without and with special tokens
    NAME.json            ids of the first texts, hashes of long runs, counts, hash of the tokenizer
    pretokenize.json     pieces of pre-tokenizers that no golden tokenizer uses

for NAME in v2_style, kimi_style, llama_style, tiny (models/tiny) and, with --deepseek, deepseek_v3.
"""

import argparse
import base64
import functools
import io
import json
import pathlib
import struct

import sentencepiece
import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import golden_strings

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/data/tokenizer"
FULL_TEXTS = 300
RUNS = ["Z", "a", "=", "7", " ", "\n", "\t", "中", "é", "😀", "\u0301", "\0", "\u3000", " \n", "ab"]
RUN_BYTES = 1_000_000

# More runs for kimi_style, where texts are cut: the first shows the cut after 400,000 characters,
# the second that Python's white space is more than Unicode's.
KIMI_RUNS = RUNS + ["Hello café ", " \x1c\x1c"]

KIMI_PATTERN = "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
])
KIMI_RESERVED_IDS = 256
# Names at Kimi's distances from the first reserved id, and a few that the generated texts spell.
KIMI_SPECIAL = {0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 3: "<|im_user|>", 4: "<|im_assistant|>",
                9: "[EOT]", 10: "<|im_system|>", 17: "<|im_middle|>", 30: "<|begin|>",
                31: "<|end|>", 32: "<｜User｜>", 254: "[UNK]", 255: "[PAD]"}
KIMI_VISIBLE = {11: "<|tool_calls_section_begin|>", 12: "<|tool_calls_section_end|>",
                13: "<|tool_call_begin|>", 14: "<|tool_call_argument_begin|>",
                15: "<|tool_call_end|>", 22: "<think>", 23: "</think>", 33: "<tool>"}
# Words that are not the concatenation of two tokens: only a lookup of whole words finds them.
KIMI_WHOLE_WORDS = ["۳۱۲", "۲۳۱", "©©©©©©©", "一一一一一一一"]

# The ranges of step 2 in DeepSeek-V2's pre-tokenizer: cased letters of an old Unicode version.
V2_LETTERS = """41-5A 61-7A B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376 377 37B-37D 37F
386 388-38A 38C 38E-3A1 3A3-3F5 3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA
1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A 1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B
1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4
1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 212A-212D 212F-2134 2139 213C-213F
2145-2149 214E 2183 2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2 2CF3 A640-A66D A680-A69B A722-A76F
A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F 104B0-104D3
104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF 1E900-1E943"""
V2_PUNCTUATION = "21-2F 3A-7E FF01-FF0F FF1A-FF5E 2018-201F 3000-3002"
V2_IDEOGRAPHS = "4E00-9FA5 0800-4E00 AC00-D7FF"


def character_class(ranges):
    out = ""
    for entry in ranges.split():
        ends = [chr(int(e, 16)) for e in entry.split("-")]
        out += "-".join("\\" + e if e in "[]\\^-&" else e for e in ends)
    return f"[{out}]"


def v2_pre_tokenizer():
    patterns = [
        r"[\r\n]",
        r"\s?" + character_class(V2_LETTERS) + "+",
        r"\s?" + character_class(V2_PUNCTUATION) + "+",
        r"\s+$",
        character_class(V2_IDEOGRAPHS) + "+",
    ]
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]
        + [pre_tokenizers.Digits(individual_digits=True),
           pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def train_v2_style(fragments):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = v2_pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, min_frequency=2, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    corpus = (golden_strings.random_text(i, fragments).decode("utf-8", "replace")
              for i in range(1_000_000, 1_003_000))
    tokenizer.train_from_iterator(corpus, trainer)
    # One of each kind, so that every flag has a text that shows it.
    tokenizer.add_tokens([
        AddedToken("<|begin|>", special=True, normalized=False),
        AddedToken("<|end|>", special=True, normalized=True, rstrip=True),
        AddedToken("<|end|>x", special=True, normalized=False),
        AddedToken("<|pad|>", special=True, normalized=False, lstrip=True, rstrip=True),
        AddedToken("<user>", special=False, normalized=True),
        AddedToken("<tool>", special=False, normalized=False, lstrip=True),
        AddedToken("</tool>", special=False, normalized=False, rstrip=True),
        AddedToken("WORD", special=False, normalized=True, single_word=True),
    ])
    folder = OUT / "v2_style"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.loads(tokenizer.to_str())
    text["post_processor"] = {"type": "ByteLevel", "add_prefix_space": True,
                              "trim_offsets": False, "use_regex": True}
    text["model"]["merges"] = [" ".join(m) for m in text["model"]["merges"]]
    (folder / "tokenizer.json").write_text(json.dumps(text, ensure_ascii=False, indent=0) + "\n")
    config = {"add_bos_token": True, "bos_token": "<|begin|>",
              "eos_token": {"__type": "AddedToken", "content": "<|end|>"},
              "pad_token": "<|pad|>", "chat_template": "{{ bos_token }}{{ messages }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def train_kimi_style(fragments):
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(KIMI_PATTERN), "isolated"),
         pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = trainers.BpeTrainer(
        vocab_size=1500, min_frequency=2, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    corpus = (golden_strings.random_text(i, fragments).decode("utf-8", "replace")
              for i in range(1_000_000, 1_003_000))
    trained.train_from_iterator(corpus, trainer)
    # The byte-level alphabet spells byte b as the b-th of: printable Latin-1 first, then U+0100 on.
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    symbols = {chr(b): b for b in printable}
    symbols |= {chr(0x100 + i): b
                for i, b in enumerate(b for b in range(256) if b not in printable)}
    vocab = sorted(trained.get_vocab().items(), key=lambda entry: entry[1])
    tokens = [bytes(symbols[c] for c in text) for text, _ in vocab]
    for word in map(str.encode, KIMI_WHOLE_WORDS):
        assert not any(word[:k] in tokens and word[k:] in tokens for k in range(len(word) + 1))
        tokens.append(word)
    folder = OUT / "kimi_style"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiktoken.model").write_text(
        "".join(f"{base64.b64encode(t).decode()} {rank}\n" for rank, t in enumerate(tokens)))
    added = {}
    for at, content in sorted((KIMI_SPECIAL | KIMI_VISIBLE).items()):
        added[str(len(tokens) + at)] = {
            "content": content, "lstrip": False, "normalized": False, "rstrip": False,
            "single_word": False, "special": at in KIMI_SPECIAL}
    config = {"added_tokens_decoder": added, "bos_token": "[BOS]", "eos_token": "[EOS]",
              "pad_token": "[PAD]", "unk_token": "[UNK]", "tokenizer_class": "TikTokenTokenizer",
              "chat_template": "{{ messages }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=0) + "\n")


LLAMA_FIRST_PIECE = 3 + 256  # <unk>, <s>, </s> and the bytes come first


def train_llama_style(fragments):
    corpus = (golden_strings.random_text(i, fragments).decode("utf-8", "replace").replace("\0", "")
              for i in range(1_000_000, 1_003_000))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=corpus, model_writer=model, vocab_size=1500, model_type="bpe",
        byte_fallback=True, split_digits=True, character_coverage=0.99, minloglevel=2,
        normalization_rule_name="identity", remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True, num_threads=1)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    vocab = {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
    for piece, i in vocab.items():  # merges go by score, so by id
        assert i < LLAMA_FIRST_PIECE or processor.get_score(i) == LLAMA_FIRST_PIECE - i, piece
    merges = []
    for piece, i in sorted(vocab.items(), key=lambda entry: entry[1]):
        if i >= LLAMA_FIRST_PIECE:
            pairs = [(piece[:k], piece[k:]) for k in range(1, len(piece))]
            known = [pair for pair in pairs if pair[0] in vocab and pair[1] in vocab]
            merges += sorted(known, key=lambda pair: (vocab[pair[0]], vocab[pair[1]]))
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True,
                                     byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
         decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", vocab["<s>"])])
    tokenizer.add_special_tokens([
        AddedToken(text, special=True, normalized=False)
        for text in ("<unk>", "<s>", "</s>", "<|im_end|>", "<|im_start|>", "<|begin|>", "<|end|>")])
    tokenizer.add_tokens([AddedToken("<tool>", special=False, normalized=False)])
    folder = OUT / "llama_style"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.loads(tokenizer.to_str())
    text["model"]["merges"] = [" ".join(m) for m in text["model"]["merges"]]
    (folder / "tokenizer.json").write_text(json.dumps(text, ensure_ascii=False, indent=0) + "\n")
    config = {"add_bos_token": True, "bos_token": "<s>", "eos_token": "</s>", "legacy": True,
              "unk_token": "<unk>", "chat_template": "{{ messages }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    texts = (text.decode("utf-8", "replace") for text in golden_strings.texts(fragments))
    different = [text for text in texts
                 if not any(mark in text for mark in ("\0", "<unk>", "<s>", "</s>", "<|", "<tool>"))
                 and processor.encode(text) != encode(tokenizer, text.encode(), False)]
    assert not different, f"other ids in sentencepiece: {different[:3]}"


def kimi_chunks(text):
    """Cuts every 400,000 characters, and every 25,000 of one kind, white space or not."""
    for begin in range(0, len(text), 400_000):
        part = text[begin:begin + 400_000]
        done = run = 0
        for i, c in enumerate(part):
            run = run + 1 if i > 0 and c.isspace() == part[i - 1].isspace() else 1
            if run > 25_000:
                yield part[done:i]
                done, run = i, 1
        yield part[done:]


class KimiTokenizer:
    """A folder with tiktoken.model, used in the same way as by Kimi's own code."""

    def __init__(self, folder):
        lines = (folder / "tiktoken.model").read_text().split("\n")[:-1]
        ranks = {base64.b64decode(t): int(r) for t, r in (line.split(" ") for line in lines)}
        added = json.loads((folder / "tokenizer_config.json").read_text())["added_tokens_decoder"]
        special = {added.get(str(i), {}).get("content", f"<|reserved_token_{i}|>"): i
                   for i in range(len(ranks), len(ranks) + KIMI_RESERVED_IDS)}
        self.visible = {token["content"] for token in added.values() if not token["special"]}
        self.encoding = tiktoken.Encoding("kimi_style", pat_str=KIMI_PATTERN,
                                          mergeable_ranks=ranks, special_tokens=special)

    def encode(self, text, parse_special):
        allowed = "all" if parse_special else self.visible
        return [token for chunk in kimi_chunks(text.decode("utf-8", "replace"))
                for token in self.encoding.encode(chunk, allowed_special=allowed,
                                                  disallowed_special=())]


def fnv64(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return value


def hash_ids(ids):
    """FNV-1a over whole ids instead of bytes."""
    value = 0xCBF29CE484222325
    for token in ids:
        value = ((value ^ token) * 0x100000001B3) & (2**64 - 1)
    return value


def short_hash(ids):
    value = hash_ids(ids)
    return (value ^ value >> 32) & 0xFFFFFFFF


def encode(tokenizer, text, parse_special):
    tokenizer.encode_special_tokens = not parse_special
    return tokenizer.encode(text.decode("utf-8", "replace"), add_special_tokens=False).ids


def write_golden(name, folder, fragments, run_bytes=RUN_BYTES):
    path = folder / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    write_ids(name, path, tokenizer.get_vocab_size(), functools.partial(encode, tokenizer), RUNS,
              fragments, run_bytes)


def write_kimi_golden(name, folder, fragments):
    tokenizer = KimiTokenizer(folder)
    write_ids(name, folder / "tiktoken.model", tokenizer.encoding.n_vocab, tokenizer.encode,
              KIMI_RUNS, fragments)


def write_ids(name, path, vocab_size, encode_text, units, fragments, run_bytes=RUN_BYTES):
    hashes, full = [], []
    for text in golden_strings.texts(fragments):
        plain, special = (encode_text(text, flag) for flag in (False, True))
        hashes += [short_hash(plain), short_hash(special)]
        if len(full) < FULL_TEXTS:
            full.append({"text": text.hex(), "plain": plain}
                        | ({"special": special} if special != plain else {}))
    runs = []
    for unit in units:
        text = unit.encode() * (run_bytes // len(unit.encode()))
        ids = encode_text(text, True)
        runs.append({"unit": unit, "count": run_bytes // len(unit.encode()), "ids": len(ids),
                     "hash": f"{hash_ids(ids):016x}"})
    golden = {"tokenizer_fnv64": f"{fnv64(path.read_bytes()):016x}",
              "vocab_size": vocab_size, "texts": len(hashes) // 2, "runs": runs,
              "full": full}
    (OUT / f"{name}.hash").write_bytes(struct.pack(f"<{len(hashes)}I", *hashes))
    write_json(OUT / f"{name}.json", golden, lists=("full", "runs"))
    print(f"{name}: {len(hashes) // 2} texts")


def write_json(path, value, lists):
    """One line per element of the named lists."""
    lines = [f'"{k}": {json.dumps(v)}' for k, v in value.items() if k not in lists]
    lines += [f'"{k}": [\n' + ",\n".join(json.dumps(v, separators=(",", ":")) for v in value[k])
              + "\n]" for k in lists]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def step(kind, **settings):
    return {"type": kind, **settings}


def split(pattern, behavior="Isolated", invert=False, kind="Regex"):
    return step("Split", pattern={kind: pattern}, behavior=behavior, invert=invert)


def byte_level(space, regex):
    return step("ByteLevel", add_prefix_space=space, trim_offsets=True, use_regex=regex)


def write_pretokenize_golden():
    behaviors = ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    cases = [[split(p, b, i)] for b in behaviors for i in (False, True)
             for p in (r"\s+", r"\d", r"x*", r"\p{Lu}")]
    cases += [[split(p, b, kind="String")] for b in behaviors for p in ("ab", ".", "", "\\s")]
    cases += [[step("Digits", individual_digits=d)] for d in (False, True)]
    patterns = [
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+",
        r"^.", r".$", r"\s+$", r"^", r"$", r"(?<=a)b", r"(?<!a)b+?", r"(?>a|ab)c", r"a++b|\x62\u0063",
        r"[\p{L}&&[^\p{Han}]]+|[\p{Han}]+", r"\P{L}+", r"\D+", r"\S", r"[\s\-\]a-c]+", r"[-a]+|[b-]",
        r"a{2,3}", r"a{2,}?", r"a{,2}b", r"a{2}", r"(a|b)+", r"\p{^Lu}", r"(?i)xx|ab", r"\v|\f|\t|\n",
        r"\p{Mn}+|\p{Sc}|\p{Nd}", r"\p{Hiragana}+|\p{Katakana}+|\p{Hangul}+|\p{Latin}+", r"\.\/\-\_",
    ]
    cases += [[split(p)] for p in patterns]
    cases += [[byte_level(s, r)] for s in (False, True) for r in (False, True)]
    cases.append([split(r"\d"), byte_level(True, True)])
    texts = ["", "a", "ab", "abab.ab", "a b  c", " a\n\n b\r\n", "x1y22zzXX  Q3", "aaaab aabc abbc ac",
             "It's I'LL don'T we\u2019re", "中文 ひらカナ 한글 mixed中a", "٣१๕ ½ ²³ $5 €6", "é e\u0301 ß ſ K",
             "\u180e\u0085\u2003x\u200b\u3000", "a-b]c .\\s/ -_ ", "😀x😀😀 \u1c89\U0002ebf0\U00010d40",
             "line\nline two\n", "  lead", "trail  ", "\t\t\f\v.", "...!?  ..", "xxabXXAB"]
    rows = []
    for steps in cases:
        one = json.dumps(steps[0] if len(steps) == 1
                         else step("Sequence", pretokenizers=steps))
        carrier = Tokenizer(models.BPE())
        holder = json.loads(carrier.to_str())
        holder["pre_tokenizer"] = json.loads(one)
        made = Tokenizer.from_str(json.dumps(holder)).pre_tokenizer
        rows.append({"steps": steps,
                     "pieces": [[p for p, _ in made.pre_tokenize_str(t)] if t else [] for t in texts]})
    write_json(OUT / "pretokenize.json", {"texts": texts, "cases": rows}, lists=("cases",))
    print(f"pretokenize: {len(rows)} pre-tokenizers, {len(texts)} texts")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deepseek", type=pathlib.Path, help="folder of DeepSeek-V3's tokenizer")
    arguments = parser.parse_args()
    fragments = golden_strings.all_fragments()
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "fragments.hex").write_text("".join(f.hex() + "\n" for f in fragments))
    train_v2_style(fragments)
    train_kimi_style(fragments)
    train_llama_style(fragments)
    write_pretokenize_golden()
    write_golden("v2_style", OUT / "v2_style", fragments)
    write_kimi_golden("kimi_style", OUT / "kimi_style", fragments)
    # A space becomes three bytes of a word.
    write_golden("llama_style", OUT / "llama_style", fragments, RUN_BYTES // 4)
    write_golden("tiny", ROOT / "models/tiny", fragments)
    if arguments.deepseek:
        write_golden("deepseek_v3", arguments.deepseek, fragments)


if __name__ == "__main__":
    main()
