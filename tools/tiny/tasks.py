"""The training texts: named task generators, mixtures of them, and packing into token rows.

A document is determined by (task mixture, seed, index), so a corpus need not be stored: any part
of it can be written again. To add a task, add a function rng -> text to TASKS.
"""

import random

import grammar
import tokenizer as tokenizer_files

TASKS = {"stories": grammar.generate, "far_stories": grammar.generate_far}


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
        """Text number `index`."""
        rng = random.Random(f"{self.seed}/{index}")
        name = rng.choices(self.names, self.weights)[0]
        return TASKS[name](rng)


class Packer:
    """Rows of `width` tokens: documents as BOS text EOS, one after the other.

    Rows come in pairs: the first starts at a BOS, the second goes on where the first was cut, and
    what is left after the second is dropped. So half of all rows start as a prompt does.
    `documents` counts the documents drawn so far; set it to resume.
    """

    def __init__(self, mixture, tokenizer, width, documents=0):
        self.mixture, self.tokenizer, self.width = mixture, tokenizer, width
        self.documents = documents
        self.waiting = None

    def row(self):
        """A list of `width` token ids."""
        if self.waiting is not None:
            row, self.waiting = self.waiting, None
            return row
        ids = []
        while len(ids) < 2 * self.width:
            text = self.mixture.document(self.documents)
            self.documents += 1
            ids.append(tokenizer_files.BOS_ID)
            ids.extend(self.tokenizer.encode(text).ids)
            ids.append(tokenizer_files.EOS_ID)
        self.waiting = ids[self.width:2 * self.width]
        return ids[:self.width]
