"""The training texts: named task generators, mixtures of them, and packing into token rows.

A document is determined by (task mixture, seed, index), so a corpus need not be stored: any part
of it can be written again. To add a task, add a function rng -> text to TASKS.
"""

import math
import random

import grammar
import story_rules
import tokenizer as tokenizer_files

# Stand around the part of a text that follows from what was said before: the answers of recall and
# addition. They weigh more in the loss, and no tokenizer ever sees the marks.
ANSWER_BEGIN, ANSWER_END = "\ue000", "\ue001"
ANSWER_WEIGHT = 5.0

NAMES = story_rules.BOYS + story_rules.GIRLS
KEY_DIGITS = 4
WORDS_PER_TOKEN = 0.8  # of the stories, with this folder's tokenizer


def is_held_out(a, b):
    """Whether the sum a + b is kept out of the training, to be asked in evaluations."""
    return (37 * a + 101 * b) % 10 == 3


def filler(rng, words):
    """About `words` words of stories, whole sentences."""
    sentences = []
    while words > 0:
        for sentence in grammar.generate(rng).split(". "):
            if words <= 0:
                break
            sentences.append(sentence.rstrip(".") + ".")
            words -= sentence.count(" ") + 1
    return " ".join(sentences)


def recall(rng, most_keys, distance):
    """Keys are told, and later each is asked once: "The key of Tom is 4821. … The key of Tom is …".

    distance: tokens of stories until the last question; the questions are spread evenly over them.
    """
    names = rng.sample(NAMES, rng.randint(1, most_keys))
    key = {name: "".join(rng.choices("0123456789", k=KEY_DIGITS)) for name in names}
    text = " ".join(f"The key of {name} is {key[name]}." for name in names)
    for name in rng.sample(names, len(names)):
        told = filler(rng, distance / len(names) * WORDS_PER_TOKEN)
        text += f" {told}" if told else ""
        text += f" The key of {name} is {ANSWER_BEGIN}{key[name]}{ANSWER_END}."
    return text


def near_recall(rng):
    """Recall with questions at once or after a sentence or two."""
    return recall(rng, 4, rng.choice([0, 0, 20, 60]))


def recall_up_to(longest):
    """Recall whose last question comes 20 to `longest` tokens later, on a logarithmic scale."""
    return lambda rng: recall(rng, 6, math.exp(rng.uniform(math.log(20), math.log(longest))))


def far_recall(rng):
    """Recall with a last question 500 to 2,100 tokens later."""
    return recall(rng, 6, rng.uniform(500, 2100))


def addition(rng):
    """Sums of numbers below 100, none of them held out: "23+58=81. 7+40=47."."""
    text = []
    while len(text) < 12:
        a, b = rng.randrange(100), rng.randrange(100)
        if not is_held_out(a, b):
            text.append(f"{a}+{b}={ANSWER_BEGIN}{a + b}{ANSWER_END}.")
    return " ".join(text)


TASKS = {"stories": grammar.generate, "far_stories": grammar.generate_far,
         "near_recall": near_recall, "recall_200": recall_up_to(200),
         "recall_600": recall_up_to(600), "far_recall": far_recall, "addition": addition}


class Mixture:
    """An endless numbered sequence of documents drawn from several tasks.

    spec: "name:weight,name:weight"; the weight may be left out (1). Thread-compatible.
    """

    def __init__(self, spec, seed):
        parts = [part.partition(":") for part in spec.split(",")]
        self.names = [name for name, _, _ in parts]
        self.weights = [float(weight or 1) for _, _, weight in parts]
        self.seed = seed

    def document(self, index):
        """Text number `index`, without marks."""
        return self.marked(index).replace(ANSWER_BEGIN, "").replace(ANSWER_END, "")

    def marked(self, index):
        """Text number `index`, its answers between marks."""
        rng = random.Random(f"{self.seed}/{index}")
        name = rng.choices(self.names, self.weights)[0]
        return TASKS[name](rng)


def encode(tokenizer, marked):
    """(ids, weights) of BOS text EOS. weights: of the loss of predicting that token."""
    ids, weights = [tokenizer_files.BOS_ID], [1.0]
    for i, part in enumerate(marked.split(ANSWER_BEGIN)):
        # Answers are digits, which the pre-tokenizer isolates: pieces encode as the whole does.
        answer, rest = part.split(ANSWER_END) if i else ("", part)
        for text, weight in ((answer, ANSWER_WEIGHT), (rest, 1.0)):
            piece = tokenizer.encode(text).ids
            ids.extend(piece)
            weights.extend([weight] * len(piece))
    return ids + [tokenizer_files.EOS_ID], weights + [1.0]


class Packer:
    """Rows of `width` tokens: documents as BOS text EOS, one after the other.

    Every row starts at a BOS; the last document is cut, and what is left of it is dropped.
    `documents` counts the documents drawn so far; set it to resume.
    """

    def __init__(self, mixture, tokenizer, width, documents=0):
        self.mixture, self.tokenizer, self.width = mixture, tokenizer, width
        self.documents = documents

    def row(self):
        """`width` token ids and as many weights."""
        ids, weights = [], []
        while len(ids) < self.width:
            more_ids, more_weights = encode(self.tokenizer, self.mixture.marked(self.documents))
            self.documents += 1
            ids.extend(more_ids)
            weights.extend(more_weights)
        return ids[:self.width], weights[:self.width]
