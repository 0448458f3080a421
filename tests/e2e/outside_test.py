#!/usr/bin/env python3
"""The interface is stable: everything that outside.txt records exists in the binary, the library, the headers and the build.

Usage: outside_test.py [--record] BUILD_DIR LATTE_BINARY CXX_COMPILER [FLAGS]; FLAGS are the compiler flags of the library.

Users may rely on every line of outside.txt. After a renaming, the old name stays as an alias: a flag that --help does not
show, a kernel name that `inspect` does not list, a second key, a declaration. The test names each line that does not hold. --record adds what is new and removes nothing. Lines of the kinds HAND_WRITTEN are added by hand.
"""
import itertools
import pathlib
import sys
import tempfile
import unittest

import outside_api
import outside_cli
import outside_files

RECORD = pathlib.Path(__file__).with_name("outside.txt")
API = ("header", "macro", "type", "enumerator", "field", "function", "offset")
BUILD = ("cmake", "installed", "make", "pkg-config", "script", "fuzz")
HAND_WRITTEN = ("chat", "exit", "request", "trace")
outside = None
recorded = {}


def read_record():
    out = {}
    for line in RECORD.read_text().splitlines():
        if line and not line.startswith("#"):
            out.setdefault(line.split(" ", 1)[0], []).append(line)
    return out


def of(*kinds):
    return list(itertools.chain.from_iterable(recorded.get(kind, []) for kind in kinds))


class OutsideStays(unittest.TestCase):
    def holds(self, missing, *kinds):
        for kind in kinds:
            self.assertTrue(of(kind), f"{RECORD.name} has no line of the kind {kind}")
        missing = list(missing)
        if missing:
            self.fail(f"recorded in {RECORD.name}, and gone or changed:\n  " + "\n  ".join(map(str, missing)))

    def test_every_kind_is_checked(self):
        checked = {"command", "flag", "positional", "value", "kernel", "kernel-of", "isa", "json", "shown", "file", "sample", "env",
                   "code", "symbol", *API, *BUILD, *HAND_WRITTEN}
        self.assertEqual(set(recorded), checked)

    def test_commands_and_flags(self):
        kinds = ("command", "flag", "positional")
        self.holds(outside_cli.missing_flags(outside, of(*kinds)), *kinds)

    def test_values_of_flags(self):
        self.holds(outside_cli.missing_values(outside, of("value")), "value")

    def test_kernels_and_instruction_sets(self):
        kinds = ("kernel", "kernel-of", "isa")
        self.holds(outside_cli.missing_kernels(outside, of(*kinds)), *kinds)

    def test_json_keys_and_files(self):
        missing = list(outside_cli.missing_json(outside, of("json", "shown")))
        now = outside_files.files(outside)
        self.holds([*missing, *(entry for entry in of("file") if entry not in now)], "json", "shown", "file")

    def test_samples_of_files_are_read(self):
        self.holds(outside_files.missing_samples(outside, of("sample")), "sample")

    def test_requests_traces_and_chat_commands(self):
        missing = itertools.chain(outside_files.missing_requests(outside, of("request")),
                                  outside_files.missing_traces(outside, of("trace")),
                                  outside_files.missing_chat_commands(outside, of("chat")))
        self.holds(missing, "request", "trace", "chat")

    def test_environment(self):
        self.holds(outside_files.missing_environment(outside, of("env")), "env")

    def test_exit_codes(self):
        self.holds(outside_files.missing_exits(outside, of("exit")), "exit")

    def test_headers_and_codes(self):
        missing, codes = outside_api.HeaderCheck(of(*API)).run(outside)
        codes = of("code") if codes is None else codes  # without a program nothing is known of them
        self.holds([*missing, *(entry for entry in of("code") if entry not in codes)], *API, "code")

    def test_symbols(self):
        now = outside_api.symbols(outside)
        self.holds([entry for entry in of("symbol") if entry not in now], "symbol")

    def test_build_and_scripts(self):
        now = outside_files.build(outside)
        self.holds([entry for entry in of(*BUILD) if entry not in now], *BUILD)


def found_now():
    out = outside_cli.commands_and_flags(outside) | outside_cli.values(outside) | outside_cli.kernels(outside)
    samples = of("sample") or sorted(outside_files.sample_files(outside))
    outside_files.lay_out_samples(outside, samples)
    keys = outside_cli.json_keys(outside, outside_cli.JSON | outside_cli.SLOW)
    if failed := [line for line in keys if not line.startswith(("json ", "shown "))]:
        raise SystemExit("\n".join(failed))
    out |= set(samples) | keys | outside_files.files(outside)
    out |= outside_files.environment(outside) | outside_files.build(outside) | outside_api.symbols(outside)
    api = outside_api.header_entries(outside.root)
    api |= outside_api.offset_entries(outside, api)
    missing, codes = outside_api.HeaderCheck(sorted(api)).run(outside)
    if missing:
        raise SystemExit(f"outside_api.py does not understand: {missing}")
    return out | api | codes


def record():
    lines = set(of(*recorded)) | found_now()
    comments = [line for line in RECORD.read_text().splitlines() if line.startswith("#")]
    RECORD.write_text("\n".join([*comments, *sorted(lines)]) + "\n")
    print(f"{RECORD}: {len(lines)} lines, {len(lines) - len(of(*recorded))} of them new")


if __name__ == "__main__":
    arguments = [word for word in sys.argv[1:] if word != "--record"]
    recorded = read_record()
    with tempfile.TemporaryDirectory(prefix="latte_stays_") as folder:
        outside = outside_cli.Outside(pathlib.Path(__file__).resolve().parents[2], pathlib.Path(arguments[0]).resolve(),
                                      pathlib.Path(arguments[1]).resolve(), [arguments[2], *" ".join(arguments[3:]).split()],
                                      folder)
        if "--record" in sys.argv:
            record()
        else:
            outside_files.lay_out_samples(outside, of("sample"))
            unittest.main(argv=sys.argv[:1])
