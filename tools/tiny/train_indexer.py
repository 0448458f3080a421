"""Trains the indexers of tiny-sparse to choose the keys that tiny itself attends to.

The weights of tiny stay as they are. Each layer's indexer learns the attention of its layer, summed
over the heads and normalised, by the KL divergence to the softmax of its scores (DeepSeek-V3.2
report, section 2.1.1, "dense warm-up stage"). Every row of tokens gives a sample of its tokens:
answers first, the others at random. Schedule, checkpoints and documents as in train.py.
"""

import argparse
import os
import time

import torch
import torch.nn.functional as F

import export
import model as tiny
import tasks
import tokenizer as tokenizer_files
import train

WIDTH = 2240  # tokens of a row: as far as tiny recalls
TASKS = "far_recall:2,recall_600:1,addition:1,stories:2"


def make_network(base):
    """The model of the exported folder `base` with new indexers; only they are trained.

    It attends to all keys, since index_topk is as large as its context.
    """
    config = tiny.tiny_sparse_config()
    network = tiny.TinyModel(config | dict(index_topk=config["max_position_embeddings"]))
    left = network.load_state_dict(export.load_folder(base).state_dict(), strict=False)
    assert all(".indexer." in name for name in left.missing_keys) and not left.unexpected_keys
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(".indexer." in name)
    return network.eval()


def indexer_state(network):
    """The tensors of the indexers."""
    return {name: value for name, value in network.state_dict().items() if ".indexer." in name}


@torch.no_grad()
def layer_inputs(network, tokens):
    """tokens [1, T+1]. Returns [(attention, its input h [1, T, D])], the MTP layer's last."""
    inputs = []
    hooks = [layer.self_attn.register_forward_pre_hook(
        lambda attention, arguments: inputs.append((attention, arguments[0])))
        for layer in network.model["layers"]]
    network.mtp_hidden(tokens[:, 1:], network.hidden(tokens[:, :-1]))
    for hook in hooks:
        hook.remove()
    return inputs


def sample_positions(weights, count, generator):
    """weights: of the loss of each token of a row. Returns sorted positions [<= count].

    Up to half of them are those that predict an answer's token.
    """
    answers = torch.tensor(weights[1:]) > 1
    order = torch.rand(len(answers), generator=generator)
    answer_rank = (order + (~answers).float() * 2).argsort()[:min(count // 2, int(answers.sum()))]
    order[answer_rank] = -1
    return order.argsort()[:count].sort().values


def distil(attention, h, cos, sin, rows, topk):
    """How far the indexer of one layer is from its attention, for the tokens `rows` [Q].

    Returns (KL divergence in nats, the share of the attention that `topk` chosen keys have, the
    largest such share), means over the tokens.
    """
    with torch.no_grad():
        c_q, q, k, _ = attention.project(h, cos, sin)
        hidden = torch.arange(h.shape[1]) > rows.unsqueeze(1)
        logits = (q[:, :, rows] @ k.transpose(-1, -2)) * attention.scale
        target = logits.masked_fill_(hidden, -torch.inf).softmax(-1).mean(1)
    scores = attention.indexer.scores(h, c_q, cos, sin, rows).masked_fill(hidden, -torch.inf)
    predicted = scores.log_softmax(-1).masked_fill(hidden, 0)
    loss = (torch.xlogy(target, target) - target * predicted).sum(-1).mean()
    with torch.no_grad():
        chosen = target.gather(-1, scores.topk(topk, dim=-1).indices).sum(-1).mean()
        best = target.topk(topk, dim=-1).values.sum(-1).mean()
    return loss, chosen, best


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--base", required=True, help="exported folder of tiny")
    parser.add_argument("--out", required=True, help="folder for checkpoint.pt and loss.csv")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--queries", type=int, default=512, help="tokens of a row to learn from")
    parser.add_argument("--peak-lr", type=float, default=3e-3)
    parser.add_argument("--save-minutes", type=float, default=2)
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "checkpoint.pt")
    network = make_network(args.base)
    trained = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=args.peak_lr, betas=(0.9, 0.95), weight_decay=0.0)
    state = dict(step=0, tokens=0, seconds=0.0, documents=0, seed=args.seed,
                 phases=train.earlier_phases(args.base))
    if args.resume and os.path.exists(path):
        saved = torch.load(path, weights_only=True)
        network.load_state_dict(saved["model"], strict=False)
        optimizer.load_state_dict(saved["optimizer"])
        state = saved["state"]
    else:
        state["phases"].append(dict(tasks=TASKS, seed=args.seed, first=0, end=0, indexer=True))
    layers = len(network.model["layers"])
    topk = tiny.tiny_sparse_config()["index_topk"]
    columns = ["step", "tokens", "seconds", "lr"] + [
        f"{what}_{i}" for what in ("kl", "chosen", "best") for i in range(layers)]
    curve = train.CurveWriter(os.path.join(args.out, "loss.csv"), state["step"], columns)
    packer = tasks.Packer(tasks.Mixture(TASKS, args.seed), tokenizer_files.load(args.base),
                          WIDTH + 1, state["documents"])
    print(f"{sum(p.numel() for p in trained)} parameters, starting at step {state['step']}",
          flush=True)

    def save():
        torch.save(dict(model=indexer_state(network), optimizer=optimizer.state_dict(),
                        state=state), path + ".new")
        os.replace(path + ".new", path)

    budget, seconds_before = args.minutes * 60, state["seconds"]
    started = last_save = time.monotonic()
    sums, summed = torch.zeros(3, layers), 0
    cos, sin = network.cos[:WIDTH], network.sin[:WIDTH]
    while state["seconds"] < budget:
        lr = train.learning_rate(args.peak_lr, state["seconds"] / budget)
        for group in optimizer.param_groups:
            group["lr"] = lr
        ids, weights = packer.row()
        generator = torch.Generator().manual_seed(state["step"])
        rows = sample_positions(weights, args.queries, generator)
        optimizer.zero_grad()
        for i, (attention, h) in enumerate(layer_inputs(network, torch.tensor([ids]))):
            values = distil(attention, h, cos, sin, rows, topk)
            values[0].backward()
            torch.nn.utils.clip_grad_norm_(attention.indexer.parameters(), 1.0)
            sums[:, i] += torch.stack([value.detach() for value in values])
        optimizer.step()
        summed += 1
        state["step"] += 1
        state["tokens"] += len(ids)
        state["documents"] = state["phases"][-1]["end"] = packer.documents
        state["seconds"] = seconds_before + time.monotonic() - started
        if state["step"] % 20 == 0:
            means = [f"{value:.4f}" for value in (sums / summed).flatten().tolist()]
            curve.row(state["step"], state["tokens"], f"{state['seconds']:.1f}", f"{lr:.6f}",
                      *means)
            print(f"step {state['step']} seconds {state['seconds']:.0f} lr {lr:.5f} "
                  f"kl {means[:layers]} chosen {means[layers:2 * layers]} best "
                  f"{means[2 * layers:]}", flush=True)
            sums, summed = torch.zeros(3, layers), 0
        if time.monotonic() - last_save > args.save_minutes * 60:
            save()
            last_save = time.monotonic()
    save()
    print(f"done: {state}", flush=True)


if __name__ == "__main__":
    main()
