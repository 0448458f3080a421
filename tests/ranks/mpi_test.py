"""Ranks under mpirun. Usage: mpi_test.py MPIRUN MPI_RANK MODULE."""
import subprocess
import sys
import unittest

import launcher

MPIRUN = RANK = MODULE = None


def ranks(count, case):
    return subprocess.run(launcher.command(MPIRUN, count, RANK, MODULE, case), text=True, capture_output=True, timeout=120,
                          stdin=subprocess.DEVNULL)


class Mpi(unittest.TestCase):
    def test_collectives(self):
        for count in (1, 2, 4):
            done = ranks(count, "collectives")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for rank in range(count):
                self.assertIn(f"rank {rank} of {count}: done", done.stdout)

    def test_one_process_alone(self):
        done = subprocess.run([RANK, MODULE, "collectives"], text=True, capture_output=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout), (0, "rank 0 of 1: done\n"), done.stderr)

    def test_a_silent_rank_is_named_after_the_deadline(self):
        done = ranks(2, "silent")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 0: lost 1: rank 1 did not take part within 0.3 s, the deadline of barrier of 2 ranks", done.stdout)

    def test_a_rank_that_receives_nothing_is_named(self):
        done = ranks(2, "deaf")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 0: lost 1: rank 1 did not take part within 0.3 s, the deadline of broadcast", done.stdout)

    def test_collectives_of_different_groups_are_not_mixed_up(self):
        done = ranks(2, "groups")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("did not take part within 0.3 s, the deadline of all_gather of 2 ranks", done.stdout)

    def test_a_rank_that_is_killed_ends_all(self):
        self.assertNotEqual(ranks(3, "dead").returncode, 0)

    def test_another_thread_ends_the_wait(self):
        done = ranks(2, "abandoned")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 0: lost 1: no heartbeat of rank 1", done.stdout)

    def test_messages_of_another_length_are_found(self):
        done = ranks(2, "shorter")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 1: lost 0: rank 0 sent 7 bytes where broadcast of 2 ranks expects 8", done.stdout)
        done = ranks(2, "longer")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("rank 1: lost 0: messages between rank 1 and rank 0 fail: MPI_ERR_TRUNCATE", done.stdout)


if __name__ == "__main__":
    MPIRUN, RANK, MODULE = sys.argv[1:4]
    launcher.skip_if_it_fails(MPIRUN)
    unittest.main(argv=sys.argv[:1], verbosity=2)
