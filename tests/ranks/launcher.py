"""Whether mpirun works on this machine."""
import subprocess
import sys


def skip_if_it_fails(mpirun):
    """Some containers do not let mpirun start processes; then there is nothing to test."""
    try:
        done = subprocess.run([mpirun, "--oversubscribe", "--allow-run-as-root", "-n", "2", "true"], capture_output=True, text=True,
                              timeout=120, stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"skipped: {error}")
        sys.exit(0)
    if done.returncode != 0:
        print(f"skipped: mpirun does not start processes here: {done.stderr}")
        sys.exit(0)
