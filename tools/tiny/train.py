"""Trains the tiny model on a CPU for a given number of minutes.

Loss = cross-entropy of the next token + MTP_WEIGHT x cross-entropy of the token after next. The
learning rate follows the clock (warm-up, constant, linear decay to the floor), so that it reaches
its floor when the minutes are over, however fast the machine is. The run can be resumed from its
checkpoint; document numbers go on where they stopped, so no document is seen twice. --phases makes
a curriculum: each phase names a mixture of tasks and the share of the time at which it ends.
"""

import argparse
import csv
import json
import os
import time

import torch
import torch.nn.functional as F

import export
import model as tiny
import tasks
import tokenizer as tokenizer_files

MTP_WEIGHT = 0.3
WARMUP, DECAY_START, BALANCE_END = 0.02, 0.38, 0.8  # shares of the time budget
FLOOR = 0.02          # share of the peak learning rate
BALANCE_GAMMA = 1e-3  # step of the router bias per training step, until BALANCE_END
COLUMNS = ["step", "tokens", "seconds", "loss", "mtp_loss", "lr", "mtp_acceptance", "answers"]


def learning_rate(peak, progress):
    """peak x schedule at `progress` (share of the time budget, 0..1)."""
    if progress < WARMUP:
        return peak * max(progress / WARMUP, 0.01)
    if progress < DECAY_START:
        return peak
    left = max(1 - progress, 0) / (1 - DECAY_START)
    return peak * (FLOOR + (1 - FLOOR) * left)


def make_optimizer(network, peak):
    """AdamW; matrices decay, norm weights do not."""
    matrices = [p for p in network.parameters() if p.ndim > 1]
    vectors = [p for p in network.parameters() if p.ndim <= 1]
    return torch.optim.AdamW([dict(params=matrices, weight_decay=0.1),
                              dict(params=vectors, weight_decay=0.0)],
                             lr=peak, betas=(0.9, 0.95), eps=1e-10, fused=True)


def weighted(logits, targets, weights):
    """Cross-entropy of [B, T, V] against [B, T], mean over the weights [B, T]."""
    each = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (each * weights.flatten()).sum() / weights.sum()


def losses(network, rows, weights):
    """rows, weights [B, T+2].

    Returns (loss, mtp loss, share of drafts that agree with the main model, share of the tokens
    with more weight that the main model predicts; 0 without any).
    """
    t = rows.shape[1] - 2
    g = network.hidden(rows[:, :t])
    logits = network.lm_head(g)
    draft_logits = network.lm_head(network.mtp_hidden(rows[:, 1:t + 1], g))
    loss = weighted(logits, rows[:, 1:t + 1], weights[:, 1:t + 1])
    mtp_loss = weighted(draft_logits, rows[:, 2:t + 2], weights[:, 2:t + 2])
    with torch.no_grad():
        choice = logits.argmax(-1)
        agree = draft_logits[:, :-1].argmax(-1) == choice[:, 1:]
        right = (choice == rows[:, 1:t + 1])[weights[:, 1:t + 1] > 1]
    return loss, mtp_loss, agree.float().mean(), right.float().sum() / max(right.numel(), 1)


def save(path, network, optimizer, state):
    """Writes the checkpoint beside its place and renames it."""
    torch.save(dict(model=network.state_dict(), optimizer=optimizer.state_dict(), state=state),
               path + ".new")
    os.replace(path + ".new", path)


def read_phases(text):
    """"tasks@end@width ..." -> list of (mixture text, share of the time at which it ends, width)."""
    parts = [part.split("@") for part in text.split()]
    return [(mixture, float(end), int(width)) for mixture, end, width in parts]


class Source:
    """The rows of the current phase; keeps account of the documents of each phase in `state`."""

    def __init__(self, args, state):
        self.phases, self.args, self.state = read_phases(args.phases), args, state
        self.tokenizer = tokenizer_files.load(args.tokenizer)
        self.packer = None

    def rows(self, progress):
        """Token ids and weights [rows, width + 2] of the phase at `progress`."""
        spec, _, width = next((phase for phase in self.phases if progress < phase[1]),
                              self.phases[-1])
        record, state = self.state["phases"], self.state
        if not record or (record[-1]["tasks"], record[-1]["seed"]) != (spec, state["seed"]):
            record.append(dict(tasks=spec, seed=state["seed"], first=state["documents"],
                               end=state["documents"]))
            self.packer = None
        if self.packer is None:
            self.packer = tasks.Packer(tasks.Mixture(spec, state["seed"]), self.tokenizer,
                                       width + 2, state["documents"])
        pairs = [self.packer.row() for _ in range(max(self.args.step_tokens // width, 1))]
        state["documents"] = record[-1]["end"] = self.packer.documents
        return torch.tensor([ids for ids, _ in pairs]), torch.tensor([w for _, w in pairs])


def earlier_phases(folder):
    """What the exported model of `folder` was trained on, each phase with its seed."""
    with open(os.path.join(folder, "training.json"), encoding="utf-8") as file:
        training = json.load(file)
    return [dict(seed=training["seed"]) | phase for phase in training["phases"]]


class CurveWriter:
    """Appends rows to the loss curve; on resume, drops rows after the checkpoint's step."""

    def __init__(self, path, step, columns=COLUMNS):
        kept = []
        if step and os.path.exists(path):
            with open(path, newline="", encoding="utf-8") as file:
                kept = [row for row in list(csv.reader(file))[1:] if int(row[0]) <= step]
        self.file = open(path, "w", newline="", encoding="utf-8")
        self.writer = csv.writer(self.file)
        self.writer.writerows([columns] + kept)

    def row(self, *values):
        self.writer.writerow(values)
        self.file.flush()


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokenizer", required=True, help="folder of tokenizer.py")
    parser.add_argument("--phases", default="stories@1@256",
                        help="'name:weight,...@end@width ...': tasks.py names, share of the time, "
                             "tokens per row")
    parser.add_argument("--init", help="exported folder whose weights to start from")
    parser.add_argument("--out", required=True, help="folder for checkpoint.pt and loss.csv")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--step-tokens", type=int, default=2048)
    parser.add_argument("--peak-lr", type=float, default=2e-3)
    parser.add_argument("--save-minutes", type=float, default=2)
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(args.threads)
    os.makedirs(args.out, exist_ok=True)
    path = os.path.join(args.out, "checkpoint.pt")
    network = tiny.TinyModel(tiny.tiny_config())
    if args.init:
        network.load_state_dict(export.load_folder(args.init).state_dict())
    else:
        network.init_weights(args.seed)
    optimizer = make_optimizer(network, args.peak_lr)
    state = dict(step=0, tokens=0, seconds=0.0, documents=0, seed=args.seed, phases=[])
    if args.resume and os.path.exists(path):
        saved = torch.load(path, weights_only=True)
        network.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        state = saved["state"]
    elif args.init:
        state["phases"] = earlier_phases(args.init)
    source = Source(args, state)
    curve = CurveWriter(os.path.join(args.out, "loss.csv"), state["step"])
    count = sum(p.numel() for p in network.parameters())
    print(f"{count} parameters, starting at step {state['step']}", flush=True)

    network.train()
    budget, seconds_before = args.minutes * 60, state["seconds"]
    started = last_save = time.monotonic()
    sums, summed = torch.zeros(4), 0
    while state["seconds"] < budget:
        progress = state["seconds"] / budget
        lr = learning_rate(args.peak_lr, progress)
        for group in optimizer.param_groups:
            group["lr"] = lr
        rows, weights = source.rows(progress)
        loss, mtp_loss, agreement, answers = losses(network, rows, weights)
        optimizer.zero_grad()
        (loss + MTP_WEIGHT * mtp_loss).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        for router in network.routers():
            router.balance(BALANCE_GAMMA if progress < BALANCE_END else 0.0)
        sums += torch.stack((loss.detach(), mtp_loss.detach(), agreement, answers))
        summed += 1
        state["step"] += 1
        state["tokens"] += rows.numel()
        state["seconds"] = seconds_before + time.monotonic() - started
        if state["step"] % 20 == 0:
            means = [f"{value:.4f}" for value in (sums / summed).tolist()]
            curve.row(state["step"], state["tokens"], f"{state['seconds']:.1f}", *means[:2],
                      f"{lr:.6f}", *means[2:])
            print(f"step {state['step']} tokens {state['tokens']} seconds {state['seconds']:.0f} "
                  f"loss {means[0]} mtp {means[1]} agree {means[2]} answers {means[3]} lr {lr:.5f}",
                  flush=True)
            sums, summed = torch.zeros(4), 0
        if time.monotonic() - last_save > args.save_minutes * 60:
            save(path, network, optimizer, state)
            last_save = time.monotonic()
    save(path, network, optimizer, state)
    print(f"done: {state}", flush=True)


if __name__ == "__main__":
    main()
