"""Trains the byte-level BPE tokenizer of the tiny model and writes Hugging Face tokenizer files.

The pre-tokenizer has the form of DeepSeek-V3's tokenizer.json, with single digits instead of
groups of three, so that numbers are spelled digit by digit.
"""

import argparse
import json
import os

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from tokenizers import trainers

VOCAB_SIZE = 2048
BOS, EOS, PAD, USER, ASSISTANT = SPECIALS = [
    "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>", "<｜User｜>", "<｜Assistant｜>"]
BOS_ID, EOS_ID, PAD_ID, USER_ID, ASSISTANT_ID = range(5)

DIGIT = r"\p{N}"
WORD = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
        r"|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
        r"| ?[\p{P}\p{S}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+")

CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages if message['role'] == 'system' %}"
    "{% if not loop.first %}{{ '\\n\\n' }}{% endif %}{{ message['content'] }}{% endfor %}"
    "{% for message in messages %}"
    "{% if message['role'] == 'user' %}{{ '<｜User｜>' + message['content'] }}"
    "{% elif message['role'] == 'assistant' %}"
    "{{ '<｜Assistant｜>' + message['content'] + eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}{% endif %}")


def train(texts, vocab_size=VOCAB_SIZE):
    """texts: iterable of str. Returns a tokenizers.Tokenizer whose specials have ids 0..4."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(DIGIT), "isolated"),
        pre_tokenizers.Split(Regex(WORD), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=2, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[AddedToken(text, special=True, normalized=False) for text in SPECIALS]))
    return tokenizer


def tokenizer_config():
    """The content of tokenizer_config.json."""
    def token(text):
        return dict(__type="AddedToken", content=text, lstrip=False, normalized=False,
                    rstrip=False, single_word=False)
    return dict(
        add_bos_token=True, add_eos_token=False, bos_token=token(BOS), eos_token=token(EOS),
        pad_token=token(PAD), unk_token=None, clean_up_tokenization_spaces=False,
        model_max_length=4096, legacy=True, sp_model_kwargs={}, use_default_system_prompt=False,
        tokenizer_class="LlamaTokenizerFast", chat_template=CHAT_TEMPLATE)


def save(tokenizer, folder):
    """Writes tokenizer.json and tokenizer_config.json."""
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        json.dump(tokenizer_config(), file, ensure_ascii=False, indent=2)
        file.write("\n")


def load(folder):
    """The tokenizer of a Hugging Face folder."""
    return Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True, help="folder to write")
    parser.add_argument("--tasks", default="stories", help="see tasks.py")
    parser.add_argument("--documents", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    import tasks
    mixture = tasks.Mixture(args.tasks, args.seed)
    tokenizer = train(mixture.document(index) for index in range(args.documents))
    save(tokenizer, args.out)
    texts = [mixture.document(index) for index in range(200)]
    lengths = [len(tokenizer.encode(text).ids) for text in texts]
    print(f"vocabulary {tokenizer.get_vocab_size()}, tokens per document {sum(lengths) / 200:.1f}, "
          f"words per document {sum(len(text.split()) for text in texts) / 200:.1f}")


if __name__ == "__main__":
    main()
