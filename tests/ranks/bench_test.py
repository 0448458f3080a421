"""`latte bench model` on several ranks: what each holds. Usage: bench_test.py LATTE MPIRUN SOURCE_DIR."""
import json
import pathlib
import struct
import subprocess
import sys
import unittest

import launcher

LATTE = MPIRUN = None
SOURCE = pathlib.Path()
SHORT = ["--prompt", 40, "--gen", 2, "--depth", 70]


def bench(*words, under=()):
    command = [*under, LATTE, "bench", "model", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # of rank 0 alone


def of_ranks(*words):
    """Weight bytes and cache bytes of each rank."""
    ranks = bench("tiny", *SHORT, *words)["ranks"]
    return [rank["weight_bytes"] for rank in ranks], [rank["cache_bytes"] for rank in ranks]


def file_bytes(model, layers):
    """Bytes of all tensors except multi-token-prediction layers, which the bench does not load."""
    data = (SOURCE / "models" / model / "model.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = json.loads(data[8:8 + size])
    return sum(one["data_offsets"][1] - one["data_offsets"][0] for name, one in tensors.items()
               if name != "__metadata__" and f"model.layers.{layers}." not in name)


class BenchModel(unittest.TestCase):
    def test_weights_of_a_rank_shrink_and_its_cache_does_not(self):
        weights, [cache] = of_ranks()
        whole = file_bytes("tiny", layers=4)
        self.assertEqual(weights, [whole])
        for flags in (lambda n: ["--tp", n], lambda n: ["--tp", n, "--ep", n]):
            before = whole
            for count in (2, 4):
                weights, caches = of_ranks(*flags(count))
                self.assertEqual(len(weights), count)
                self.assertLess(max(weights), 0.75 * before)
                self.assertGreaterEqual(sum(weights), whole)  # some are on all ranks
                self.assertEqual(caches, count * [cache])
                before = max(weights)

    def test_expanded_caches_have_the_heads_of_their_rank(self):
        _, [whole] = of_ranks("--attention", "decompressed")
        self.assertEqual(of_ranks("--attention", "decompressed", "--tp", 2)[1], 2 * [whole // 2])

    def test_groups_share_experts_and_the_first_computes(self):
        _, [whole] = of_ranks()
        weights, caches = of_ranks("--dp", 2)
        self.assertLess(max(weights), 0.9 * file_bytes("tiny", layers=4))
        self.assertEqual(caches[0], whole)
        self.assertLess(caches[1], whole)

    def test_other_models_under_mpirun(self):
        under = launcher.command(MPIRUN, 2)
        for model in (["tiny-sparse"], ["--synthetic", "v2-lite:layers=2,vocab=1024,experts=8"]):
            out = bench(*model, *SHORT, "--tp", 2, under=under)
            self.assertEqual(len(out["ranks"]), 2)
            self.assertGreater(out["decode"]["tokens_per_s"], 0)

    def test_another_number_of_ranks_is_refused(self):
        command = launcher.command(MPIRUN, 2, LATTE, "bench", "model", "tiny", "--tp", 3)
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("--tp: expected 2, the number of ranks that were started, found 3", done.stderr)


if __name__ == "__main__":
    LATTE, MPIRUN = sys.argv[1:3]
    SOURCE = pathlib.Path(sys.argv[3])
    launcher.skip_if_it_fails(MPIRUN)
    unittest.main(argv=sys.argv[:1], verbosity=2)
