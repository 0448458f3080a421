"""How tests start ranks, and whether that works on this machine."""
import atexit
import os
import shutil
import subprocess
import sys
import tempfile


def own_session_directory():
    """Open MPI keeps files in one directory per host and user and removes it when it is empty. An mpirun that starts while another
    one ends can fail on it, so each test has its own."""
    directory = tempfile.mkdtemp(prefix="ranks")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    os.environ["OMPI_MCA_orte_tmpdir_base"] = directory
    os.environ["PRTE_MCA_prte_tmpdir_base"] = directory


own_session_directory()


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
