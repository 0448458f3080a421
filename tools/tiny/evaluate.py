"""The measurements of an exported tiny model that need PyTorch or the training corpus.

Prints the held-out loss, the acceptance of the MTP layer's drafts, and how many sampled stories are
not in the corpus, which is written again from its seed for the comparison. `latte eval --texts`
judges the stories in the file of --out.
"""

import argparse
import json
import os

import torch

import export
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


def write_texts(path, texts):
    """One {"text": ...} per line."""
    with open(path, "w", encoding="utf-8") as file:
        for text in texts:
            file.write(json.dumps(dict(text=text), ensure_ascii=False) + "\n")


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="exported folder")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--prompt", choices=["bos", "opening"], default="opening")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--corpus", choices=["check", "skip"], default="check")
    parser.add_argument("--out", help="file for the samples, one {\"text\": ...} per line")
    gone = "refused: `latte eval --texts FILE` judges texts"
    parser.add_argument("--from-jsonl", help=gone)
    parser.add_argument("--show", help=gone)
    args = parser.parse_args()
    if args.from_jsonl or args.show:
        parser.error("--from-jsonl and --show: run `latte eval --texts FILE`, which judges texts")
    torch.set_num_threads(args.threads)
    with open(os.path.join(args.model, "training.json"), encoding="utf-8") as file:
        training = json.load(file)
    network = export.load_folder(args.model)
    tokenizer = tokenizer_files.load(args.model)
    loss, mtp_loss, acceptance = held_out(network, tokenizer, "stories")
    print(f"held-out loss {loss:.4f}, MTP loss {mtp_loss:.4f}, MTP acceptance {acceptance:.1%}")
    texts = sample_texts(network, tokenizer, args)
    if args.out:
        write_texts(args.out, texts)
    print(f"texts {len(texts)}, different from each other {len(set(texts))}")
    seen = sum(phase["end"] - phase["first"] for phase in training["phases"])
    print(f"training saw {seen} documents")
    if args.corpus == "check":
        corpus = corpus_texts(training)
        novel = sum(text not in corpus for text in texts)
        print(f"not in the corpus {novel} ({novel / len(texts):.1%})")


if __name__ == "__main__":
    main()
