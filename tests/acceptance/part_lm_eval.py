"""lm-eval's client `local-completions` on 50 items about the stories of models/tiny, without any hub."""
import json
import pathlib
import random
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ITEMS = 50
LEAST_ACCURACY = 0.9  # guessing gives 0.5
COMPARED = 5          # items whose logprobs `latte score` computes too
TOLERANCE = 0.001     # both compute in bf16; these prompts are shorter than a cached page


def write_items(path, seed):
    """JSON lines: context, two choices, index of the right one."""
    sys.path.insert(0, str(ROOT / "tools/tiny"))
    import story_rules  # the grammar that the model has learned
    random_ = random.Random(seed)
    heroes = [(name, 0) for name in story_rules.BOYS] + [(name, 1) for name in story_rules.GIRLS]
    with open(path, "w", encoding="utf-8") as file:
        for i in range(ITEMS):
            name, label = heroes[i % len(heroes)]
            look, kind = random_.choice(story_rules.LOOKS)["a"], random_.choice(story_rules.KINDS)
            item = {"context": f"Once upon a time, there was {look} {kind} named {name}.",
                    "choices": ["He had a home", "She had a home"], "label": label}
            file.write(json.dumps(item) + "\n")


def logprob_of(context, text):
    """The logprob of a text by `latte score`, which uses no server. Like lm-eval's prompts, it has no start token."""
    ids = context.server.post("/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]
    done = subprocess.run([context.latte, "score", "tiny", "--ids", ",".join(map(str, ids)), "--json"], cwd=ROOT,
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["total_logprob"]


def check_samples(context, part, samples):
    """lm-eval must have read the right entries of the lists that the server wrote."""
    part.check(len(samples) == ITEMS, f"expected {ITEMS} items, found {len(samples)}")
    for sample in samples[:COMPARED]:
        beginning = sample["doc"]["context"]
        before = logprob_of(context, beginning)
        for choice, (found, _) in zip(sample["doc"]["choices"], sample["filtered_resps"], strict=True):
            expected = logprob_of(context, f"{beginning} {choice}") - before
            part.check(abs(float(found) - expected) <= TOLERANCE,
                       f"item {sample['doc_id']}, {choice!r}: latte score gives the logprob {expected:.4f}, the server gave {found}")


def run(context, part):
    out, environment = context.out / "lm-eval", context.environment
    out.mkdir(exist_ok=True)
    for old in out.glob("results/**/*.json*"):
        old.unlink()
    write_items(out / "stories.jsonl", context.seed)
    arguments = (f"base_url={context.server.url}/v1/completions,model=tiny,tokenizer={ROOT / 'models/tiny'},"
                 "tokenizer_backend=huggingface,tokenized_requests=True,num_concurrent=4,max_retries=1,"
                 "max_length=1024")
    log = context.out / "lm-eval.log"
    status = environment.run([environment.python.parent / "lm_eval", "--model", "local-completions", "--model_args", arguments,
                              "--tasks", "latte_stories", "--include_path", HERE / "lm_eval_task", "--output_path", out / "results",
                              "--log_samples"], log, cwd=out, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1",
                             TRANSFORMERS_OFFLINE="1", HF_HOME=str(out / "hub"), TOKENIZERS_PARALLELISM="false")
    results = sorted(out.glob("results/**/results_*.json"))
    if not part.check(status == 0 and results, f"lm_eval ends with status {status}; see {log}"):
        return
    accuracy = json.loads(results[-1].read_text(encoding="utf-8"))["results"]["latte_stories"]["acc,none"]
    part.check(accuracy >= LEAST_ACCURACY, f"accuracy: expected at least {LEAST_ACCURACY}, found {accuracy}")
    part.notes.append(f"accuracy {accuracy:.2f} over {ITEMS} items")
    lines = sorted(out.glob("results/**/samples_*.jsonl"))[-1].read_text(encoding="utf-8").splitlines()
    check_samples(context, part, [json.loads(line) for line in lines])
