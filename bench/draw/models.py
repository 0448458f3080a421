"""Bytes of the published models, from the records of `latte inspect` on their configurations (models.jsonl)."""
from records import read

INT4_BYTES = 0.5 + 2 / 32  # of a weight, with a bf16 scale for 32 weights
CONTEXT = 32768


class Model:
    """Sizes without the layers for drafting. What `latte quantize` leaves in bf16 is in docs/formats/weights.md."""

    def __init__(self, record):
        self.name = record["model"]
        self.context = min(CONTEXT, record["max_position"])  # tokens of the cache
        self._record = record
        parts = record["bf16_bytes_by_component"]
        self._embedding, self._head = parts["embedding"] / 2, parts["head"] / 2
        self._matrices = sum(parts[name] for name in ("attention", "dense_mlp", "routed_experts", "shared_experts")) / 2
        # kv_b_proj maps a latent to keys and values of all heads; mha_bytes also counts the rope part of keys.
        rope = record["heads"] * record["rope"] * record["layers"]
        self._kv_b = record["latent"] * (record["mha_bytes_per_token"] / 2 - rope)

    def bf16(self):
        return 2 * self._record["total_params"]

    def int4(self):
        packed = self._matrices - self._kv_b
        return INT4_BYTES * packed + 2 * (self._record["total_params"] - packed)

    def cache(self):
        """Bytes of the cache of a sequence, in bf16: latents, and index keys where there is an indexer."""
        return self.context * (self._record["mla_bytes_per_token"] + self._record["index_key_bytes_per_token"])

    def mha_cache(self):
        """The same with keys and values of all heads."""
        return self.context * self._record["mha_bytes_per_token"]

    def int8_read(self):
        """Bytes of the weights that one token reads, in int8 or fp8: not the embedding, and the head in bf16."""
        head = self._head or self._embedding  # one matrix for both
        active = self._record["active_params"] - self._embedding - self._head
        return active + 2 * head


def models():
    return [Model(record) for record in read("models")]
