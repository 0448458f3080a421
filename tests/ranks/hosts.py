"""Two hosts on this machine: network namespaces with host names of their own, joined by a bridge. Needs root and iproute2."""
import itertools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

# A link that is cut is noticed in about five seconds, instead of eight minutes.
KEEPALIVE = ["--mca", "oob_tcp_keepalive_time", "3", "--mca", "oob_tcp_keepalive_intvl", "1", "--mca", "oob_tcp_keepalive_probes", "2"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=20)


class Hosts:
    """The hosts NAMEa and NAMEb; mpirun runs on the first one."""

    made = itertools.count()

    def __init__(self, mpirun):
        self.mpirun = mpirun
        # Names of interfaces have at most 15 characters, and are free only some time after their namespace was deleted.
        self.name = f"lt{os.getpid()}{next(Hosts.made)}"[-12:]
        self.names = [f"{self.name}{letter}" for letter in "ab"]
        self.subnet = f"10.{64 + os.getpid() // 250 % 64}.{os.getpid() % 250}"  # several labs may be there at once
        self.folder = tempfile.TemporaryDirectory()
        self.agent = pathlib.Path(self.folder.name) / "agent.sh"
        # HOST COMMAND …: in place of ssh.
        self.agent.write_text('#!/bin/sh\nhost=$1; shift\nexec ip netns exec "$host" unshare --uts sh -c '
                              '\'hostname "$0"; exec sh -c "$1"\' "$host" "$*"\n', encoding="ascii")
        self.agent.chmod(0o755)

    def __enter__(self):
        try:
            ip("link", "add", f"{self.name}r", "type", "bridge")
            ip("link", "set", f"{self.name}r", "up")
            for i, host in enumerate(self.names):
                ip("netns", "add", host)
                ip("link", "add", f"{host}v", "type", "veth", "peer", "name", "eth0", "netns", host)
                ip("link", "set", f"{host}v", "master", f"{self.name}r", "up")
                ip("-n", host, "addr", "add", f"{self.subnet}.{i + 1}/24", "dev", "eth0")
                ip("-n", host, "link", "set", "eth0", "up")
                ip("-n", host, "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for words in ([["netns", "del", host] for host in self.names] + [["link", "del", f"{self.name}r"]]):
            subprocess.run(["ip", *words], capture_output=True, timeout=20)
        self.folder.cleanup()

    def command(self, *words):
        """A command line that runs a program with two ranks, one per host."""
        return ["ip", "netns", "exec", self.names[0], self.mpirun, "--allow-run-as-root", "-n", "2",
                "--mca", "plm_rsh_agent", str(self.agent), "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1", *KEEPALIVE,
                "--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0",
                "--host", ",".join(self.names), *map(str, words)]

    def cut(self):
        """Nothing passes between the hosts any more, and neither is told."""
        ip("link", "set", f"{self.names[1]}v", "down")

    def heal(self):
        ip("link", "set", f"{self.names[1]}v", "up")


def skip_if_not_permitted(mpirun):
    if shutil.which("ip") is None or os.geteuid() != 0:
        print("skipped: network namespaces need root and iproute2")
        sys.exit(0)
    try:
        with Hosts(mpirun) as hosts:
            subprocess.run(hosts.command("true"), check=True, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    except subprocess.SubprocessError as error:
        print(f"skipped: no network namespaces, or no mpirun in them: {error} {error.stderr}")
        sys.exit(0)
