"""Measures an exported tiny model: do its stories obey the grammar, and are they new?

Samples stories with PyTorch, or reads texts that another engine wrote (--from-jsonl, one
{"text": ...} per line), and reports the share that the strict parser accepts and the share that
is not in the training corpus, which is written again from its seed for the comparison. Without
--from-jsonl it also reports the held-out loss and the acceptance of the MTP layer's drafts.
"""

import argparse
import json
import os

import torch

import export
import grammar
import sampling
import tasks
import tokenizer as tokenizer_files
import train

OPENING = "Once upon a time"


def sample_texts(network, tokenizer, args):
    """Sampled stories, the prompt's text included."""
    prompt_text = "" if args.prompt == "bos" else OPENING
    prompt = [tokenizer_files.BOS_ID] + tokenizer.encode(prompt_text).ids
    rows = sampling.sample(network, prompt, args.count, args.temperature, args.max_tokens,
                           tokenizer_files.EOS_ID, args.seed)
    return [prompt_text + tokenizer.decode(row, skip_special_tokens=False) for row in rows]


def jsonl_texts(path):
    """The texts of a JSON-lines file; sentence marks, if an engine kept them, are removed."""
    texts = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                text = json.loads(line)["text"]
                for mark in tokenizer_files.SPECIALS[:2]:
                    text = text.replace(mark, "")
                texts.append(text)
    return texts


def corpus_texts(training):
    """The set of documents that the training has drawn, written again from the seed."""
    return {mixture.document(index)
            for phase in training["phases"]
            for mixture in [tasks.Mixture(phase["tasks"], phase.get("seed", training["seed"]))]
            for index in range(phase["first"], phase["end"])}


@torch.no_grad()
def held_out(network, tokenizer, spec, rows=64, width=256):
    """(loss, MTP loss, MTP acceptance) on documents of a seed that training never uses."""
    packer = tasks.Packer(tasks.Mixture(spec, "held out"), tokenizer, width + 2)
    pairs = [packer.row() for _ in range(rows)]
    batch, weights = torch.tensor([ids for ids, _ in pairs]), torch.tensor([w for _, w in pairs])
    return [value.item() for value in train.losses(network, batch, weights)[:3]]


def judge(texts, corpus, show):
    """Prints the shares; returns (share that parses, share not in the corpus)."""
    verdicts = [grammar.parse(text) for text in texts]
    parsed = sum(accepted for accepted, _ in verdicts)
    novel = sum(text not in corpus for text in texts)
    both = sum(accepted and text not in corpus for (accepted, _), text in zip(verdicts, texts))
    count = len(texts)
    print(f"texts {count}, different from each other {len(set(texts))}")
    print(f"parse {parsed} ({parsed / count:.1%}), not in the corpus {novel} "
          f"({novel / count:.1%}), both {both} ({both / count:.1%})")
    failures = [(text, why) for text, (accepted, why) in zip(texts, verdicts) if not accepted]
    for text, why in failures[:show]:
        print(f"--- refused {why}\n{text}")
    return parsed / count, novel / count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="exported folder")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--prompt", choices=["bos", "opening"], default="opening")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--show", type=int, default=3, help="refused texts to print")
    parser.add_argument("--corpus", choices=["check", "skip"], default="check")
    parser.add_argument("--from-jsonl", help="judge the texts of this file instead")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    with open(os.path.join(args.model, "training.json"), encoding="utf-8") as file:
        training = json.load(file)
    if args.from_jsonl:
        texts = jsonl_texts(args.from_jsonl)
    else:
        network = export.load_folder(args.model)
        tokenizer = tokenizer_files.load(args.model)
        loss, mtp_loss, acceptance = held_out(network, tokenizer, "stories")
        print(f"held-out loss {loss:.4f}, MTP loss {mtp_loss:.4f}, MTP acceptance {acceptance:.1%}")
        texts = sample_texts(network, tokenizer, args)
        print(f"first sample: {texts[0]}")
    corpus = corpus_texts(training) if args.corpus == "check" else set()
    seen = sum(phase["end"] - phase["first"] for phase in training["phases"])
    print(f"training saw {seen} documents")
    judge(texts, corpus, args.show)


if __name__ == "__main__":
    main()
