"""How tests start ranks, and whether that works on this machine."""
import subprocess
import sys


def command(mpirun, count, *words):
    """Ranks that may be more than the processors. They are not bound: a rank that is, waits for whatever else runs there."""
    return [mpirun, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1",
            "-n", str(count), *map(str, words)]


def skip_if_it_fails(mpirun):
    """Some containers do not let mpirun start processes; then there is nothing to test."""
    try:
        done = subprocess.run(command(mpirun, 2, "true"), capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"skipped: {error}")
        sys.exit(0)
    if done.returncode != 0:
        print(f"skipped: mpirun does not start processes here: {done.stderr}")
        sys.exit(0)
