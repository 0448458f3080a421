"""latte pull against a server that behaves, and misbehaves, as the Hugging Face Hub and its storage do.
Usage: pull_test.py LATTE_BINARY; needs only Python's standard library.
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from hub import COMMIT, Fault, Hub

LATTE = None
ROOT = pathlib.Path(__file__).resolve().parents[3]
WEIGHTS = random.Random(1).randbytes(20 << 20)  # four ranges for four connections
FILES = {"config.json": b'{"model_type": "deepseek_v3"}\n', "tokenizer.json": b"{}\n", "README.md": b"# Model\n",
         "model.safetensors": WEIGHTS, "empty.txt": b"", "additional_chat_templates/tool_use.jinja": b"{{ x }}",
         "pytorch_model.bin": b"no" * 100, "consolidated.safetensors": b"twice", "onnx/model.onnx": b"no"}
READ = {"config.json", "tokenizer.json", "README.md", "model.safetensors", "empty.txt", "additional_chat_templates/tool_use.jinja"}
TOKEN = "hf_secretsecret"


class PullCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.cache = self.home / "hub"
        self.repo = self.cache / "models--org--model"

    def hub(self, files=None, **how):
        hub = Hub(FILES if files is None else files, **how)
        self.addCleanup(hub.__exit__)
        return hub

    def environment(self, hub, **more):
        clean = {key: value for key, value in os.environ.items()
                 if not key.startswith("HF_") and key.lower() not in ("http_proxy", "https_proxy", "all_proxy")}
        return clean | {"HOME": str(self.home), "HF_HOME": str(self.home), "HF_ENDPOINT": hub.url, "NO_PROXY": "*"} | more

    def pull(self, hub, *arguments, **more):
        flags = {"--retries": "2", "--timeout": "10"}
        short = [word for flag, value in flags.items() if flag not in arguments for word in (flag, value)]
        return subprocess.run([LATTE, "pull", "org/model", *short, *map(str, arguments)], text=True, capture_output=True, timeout=120,
                              env=self.environment(hub, **more))

    def start(self, hub, *arguments, **more):
        return subprocess.Popen([LATTE, "pull", "org/model", *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=self.environment(hub, **more))

    def snapshot(self, commit=COMMIT):
        folder = self.repo / "snapshots" / commit
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def assert_pulled(self, done, files=FILES, names=READ):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), str(self.repo / "snapshots" / COMMIT))
        self.assert_content(files, names)
        self.assertEqual([path.name for path in (self.repo / "blobs").iterdir() if ".latte" in path.name], [])

    def assert_content(self, files, names):
        found = self.snapshot()
        self.assertEqual(set(found), set(names))
        for name in names:  # a difference of megabytes would take minutes to print
            self.assertTrue(found[name] == files[name], f"{name} has another content")

    def assert_refused(self, done, *texts, code=None):
        """One line on standard error besides notes and progress; no snapshot, no ref, no blob that is not verified."""
        self.assertNotEqual(done.returncode, 0)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr)
        errors = [line for line in done.stderr.splitlines() if line.startswith(("latte: ", "latte pull: ")) and not line.startswith("latte: note")]
        self.assertEqual(len(errors), 1, done.stderr)
        for text in texts:
            self.assertIn(text, errors[0])
        self.assertNotIn("secret", done.stderr)
        self.assertEqual(set(self.snapshot()), set())
        self.assertFalse((self.repo / "refs/main").exists())

    def wait_for(self, condition, seconds=20):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, "nothing happened")
            time.sleep(0.02)


class Layout(PullCase):
    def test_the_files_that_latte_reads_in_the_layout_of_the_cache(self):
        hub = self.hub()
        done = self.pull(hub)
        self.assert_pulled(done)
        self.assertEqual((self.repo / "refs/main").read_text(), COMMIT)
        for name in READ:
            link = self.repo / "snapshots" / COMMIT / name
            up = "../" * name.count("/")
            self.assertEqual(os.readlink(link), f"../../{up}blobs/{hub.etag(name)}")
        self.assertIn("next: latte chat org/model", done.stderr)
        self.assertTrue((self.cache / "CACHEDIR.TAG").exists())

    def test_a_second_pull_fetches_nothing(self):
        hub = self.hub()
        self.pull(hub)
        before = len(hub.requests)
        self.assert_pulled(self.pull(hub))
        self.assertEqual(len(hub.requests), before + 1)

    def test_a_newer_commit_shares_blobs(self):
        hub = self.hub()
        self.pull(hub)
        hub.commit, hub.files["config.json"] = "f" * 40, b'{"model_type": "deepseek_v2"}'
        before = len(hub.asked("storage"))
        self.assertEqual(self.pull(hub).returncode, 0)
        self.assertEqual(len(hub.asked("storage")), before)
        self.assertEqual((self.repo / "refs/main").read_text(), "f" * 40)
        self.assertEqual(self.snapshot("f" * 40)["config.json"], b'{"model_type": "deepseek_v2"}')
        self.assertEqual(self.snapshot()["config.json"], FILES["config.json"])

    def test_include_exclude_and_dry_run(self):
        hub = self.hub()
        listed = self.pull(hub, "--dry-run", "--include", "*.bin", "--include", "onnx/", "--exclude", "*.onnx")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("200 B", listed.stdout)
        self.assertIn("pytorch_model.bin", listed.stdout)
        self.assertNotIn("model.onnx", listed.stdout)
        self.assertFalse(self.cache.exists())
        self.assertEqual(self.pull(hub, "--include", "*.bin").returncode, 0)
        self.assertEqual(set(self.snapshot()), {"pytorch_model.bin"})
        nothing = self.pull(hub, "--include", "*.gguf")
        self.assertEqual(nothing.returncode, 2)

    def test_revisions(self):
        hub = self.hub()
        for revision in ("v1", "refs/pr/1", COMMIT):
            done = subprocess.run([LATTE, "pull", f"org/model@{revision}", "--json"], text=True, capture_output=True, timeout=60,
                                  env=self.environment(hub))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["commit"], COMMIT)
            self.assertEqual(done.stderr, "")
            if revision != COMMIT:
                self.assertEqual((self.repo / "refs" / revision).read_text(), COMMIT)
        self.assertFalse((self.repo / "refs" / COMMIT).exists())
        self.assertTrue(hub.asked("hub", "revision/refs/pr/1"))

    def test_a_pulled_model_runs_by_its_name(self):
        tiny = ROOT / "models/tiny"
        hub = self.hub({path.name: path.read_bytes() for path in tiny.iterdir()})
        self.assertEqual(self.pull(hub).returncode, 0)
        runs = [subprocess.run([LATTE, "run", model, "-p", "Once", "-n", "8", "--seed", "0"], capture_output=True, text=True, timeout=60,
                               env=self.environment(hub)) for model in (tiny, "org/model", f"org/model@{COMMIT}")]
        self.assertEqual(runs[0].returncode, 0, runs[0].stderr)
        self.assertEqual([run.stdout for run in runs], [runs[0].stdout] * 3)


class Transfer(PullCase):
    def test_ranges_over_several_connections(self):
        hub = self.hub()
        self.assert_pulled(self.pull(hub, "--connections", 4))
        ranges = sorted(headers["Range"] for headers in hub.asked("storage"))
        self.assertEqual(len(ranges), 4, ranges)

    def test_a_response_that_is_cut_goes_on_where_it_ended(self):
        hub = self.hub()
        hub.faults = [Fault(cut=1 << 20, times=2)]
        self.assert_pulled(self.pull(hub, "--connections", 1))
        ranges = [headers.get("Range") for headers in hub.asked("storage")]
        self.assertEqual(ranges[1:], [f"bytes={1 << 20}-{len(WEIGHTS) - 1}", f"bytes={2 << 20}-{len(WEIGHTS) - 1}"])
        self.assertEqual(hub.asked("storage")[1]["If-Range"], '"storage-1"')

    def test_a_silent_server_is_left(self):
        hub = self.hub()
        hub.faults = [Fault(cut=1 << 20, stall=600)]
        self.assert_pulled(self.pull(hub, "--timeout", "1", "--retries", 5))

    def test_a_server_that_stays_silent_ends_the_pull_and_the_next_one_goes_on(self):
        hub = self.hub()
        hub.faults = [Fault("model.safetensors", cut=3 << 20), Fault("model.safetensors", times=100, cut=0)]
        self.assert_refused(self.pull(hub, "--connections", 1), "model.safetensors", "the same command continues", code=1)
        hub.faults, before = [], len(hub.asked("storage"))
        self.assert_pulled(self.pull(hub, "--connections", 1))
        self.assertEqual(hub.asked("storage")[before]["Range"], f"bytes={3 << 20}-{len(WEIGHTS) - 1}")

    def test_a_server_without_ranges(self):
        hub = self.hub()
        hub.ranges = False
        self.assert_pulled(self.pull(hub))

    def test_a_server_without_ranges_that_cuts(self):
        hub = self.hub()
        hub.ranges = False
        hub.faults = [Fault(cut=1 << 20, times=3)]
        self.assert_pulled(self.pull(hub, "--connections", 2))

    def test_a_file_that_changes_on_the_server(self):
        hub = self.hub()
        hub.faults = [Fault("model.safetensors", cut=3 << 20), Fault("model.safetensors", times=100, cut=0)]
        self.pull(hub, "--connections", 1)
        hub.faults, hub.etag_of_storage = [], '"storage-2"'
        self.assert_pulled(self.pull(hub, "--connections", 1))

    def test_storage_that_never_agrees_on_an_etag(self):
        hub = self.hub()
        hub.faults = [Fault("model.safetensors", headers={"ETag": f'"{i}"'}, cut=1 << 20) for i in range(4)]
        self.assert_pulled(self.pull(hub, "--connections", 1, "--retries", 5))

    def test_errors_of_a_server_that_pass(self):
        hub = self.hub()
        hub.faults = [Fault(status=503), Fault(status=500, where="hub", name="/api/"), Fault(status=502, where="hub", name="config")]
        self.assert_pulled(self.pull(hub))

    def test_errors_of_a_server_that_stay(self):
        hub = self.hub()
        hub.faults = [Fault(status=503, times=100, where="hub", name="/api/")]
        self.assert_refused(self.pull(hub), "503", "try again later", code=1)

    def test_an_expired_address_is_asked_for_again(self):
        hub = self.hub()
        hub.faults = [Fault(cut=1 << 20), Fault(status=403)]
        self.assert_pulled(self.pull(hub, "--connections", 1))
        self.assertEqual(len(hub.asked("hub", "model.safetensors")), 3)

    def test_too_many_requests(self):
        hub = self.hub()
        hub.faults = [Fault(status=429, headers={"Retry-After": "1"}, where="hub", name="/api/"),
                      Fault(status=429, headers={"Retry-After": "1"})]
        began = time.monotonic()
        done = self.pull(hub)
        self.assert_pulled(done)
        self.assertGreaterEqual(time.monotonic() - began, 2)
        self.assertIn("429", done.stderr)

    def test_a_server_that_asks_to_wait_for_an_hour(self):
        hub = self.hub()
        hub.faults = [Fault(status=429, headers={"Retry-After": "3600"}, where="hub", name="/api/")]
        self.assert_refused(self.pull(hub), "429", "3600 seconds", "HF_TOKEN", code=1)


class Lies(PullCase):
    def test_wrong_content_is_fetched_twice_and_never_kept(self):
        wrong = bytes(len(WEIGHTS))
        for times, good in ((4, True), (100, False)):
            with self.subTest(times=times):
                hub = self.hub()
                hub.faults = [Fault("model.safetensors", times=times, body=wrong)]
                done = self.pull(hub)
                if good:
                    self.assert_pulled(done)
                    self.assertIn("fetching it again", done.stderr)
                    self.setUp()
                else:
                    self.assert_refused(done, "model.safetensors: expected the checksum", hub.etag("model.safetensors"), code=2)
                    self.assertFalse((self.repo / "blobs" / hub.etag("model.safetensors")).exists())
                    self.assertEqual([p.name for p in (self.repo / "blobs").iterdir() if ".latte" in p.name], [])

    def test_wrong_content_of_a_small_file(self):
        hub = self.hub()
        hub.faults = [Fault("config.json", where="hub", times=100, body=b'{"model_type": "deepseek_v2"}\n')]
        self.assert_refused(self.pull(hub), "config.json: expected the checksum", code=2)

    def test_lengths(self):
        for fault, text in ((Fault("model.safetensors", times=100, body=WEIGHTS[:-1]), "expected"),
                            (Fault("model.safetensors", times=100, body=WEIGHTS + b"x"), "expected"),
                            (Fault("config.json", where="hub", times=100, body=b"{}"), "30 bytes"),
                            (Fault("config.json", where="hub", times=100, body=b"{" * 31), "30 bytes"),
                            (Fault("config.json", where="hub", times=100, length=31), "expected 30 bytes"),
                            (Fault("model.safetensors", times=100, headers={"Content-Encoding": "gzip"}), "gzip"),
                            (Fault("model.safetensors", times=100, headers={"Content-Range": "bytes 5-6/7"}), "bytes 5-6/7")):
            with self.subTest(text=text, name=fault.name, body=fault.body and len(fault.body)):
                self.setUp()
                hub = self.hub()
                hub.faults = [fault]
                self.assert_refused(self.pull(hub, "--retries", 1), fault.name, text)

    def test_more_than_the_length_that_was_told(self):
        hub = self.hub()
        hub.faults = [Fault("config.json", where="hub", times=100, body=b"{" * 31, headers={"Content-Length": "30"})]
        self.assert_refused(self.pull(hub), "config.json")

    def test_a_redirect_that_contradicts_the_listing(self):
        for header in ({"X-Linked-Etag": '"' + "0" * 64 + '"'}, {"X-Linked-Size": "5"}, {"X-Repo-Commit": "f" * 40}):
            with self.subTest(header=header):
                self.setUp()
                hub = self.hub()
                hub.linked = {"model.safetensors": header}
                self.assert_refused(self.pull(hub, "--retries", 1), "model.safetensors", *map(str.lower, header))

    def test_names_that_lead_elsewhere(self):
        for name in ("../evil.json", "/etc/evil.json", "a/../../evil.json", "a\\..\\evil.json", "a\0b.json", "a//b.json", "", "."):
            with self.subTest(name=name):
                hub = self.hub()
                hub.edit_listing = lambda listing, name=name: listing | {
                    "siblings": listing["siblings"] + [{"rfilename": name, "size": 1, "blobId": "0" * 40}]}
                self.assert_refused(self.pull(hub), "listing of org/model", code=2)
                self.assertFalse(self.cache.exists())

    def test_listings_that_are_none(self):
        for text in (b"<html>", b"[]", b"{}", b'{"sha": "main", "siblings": []}', b'{"sha": "' + COMMIT.encode() + b'"}'):
            with self.subTest(text=text):
                hub = self.hub()
                hub.edit_listing = lambda _, text=text: json.loads(text) if text[:1] in b"[{" else "<html>"
                self.assert_refused(self.pull(hub), "listing of org/model", code=2)

    def test_a_listing_or_head_that_is_too_large(self):
        hub = self.hub()
        hub.edit_listing = lambda listing: listing | {"description": "x" * (33 << 20)}
        self.assert_refused(self.pull(hub), "a listing of at most 32 MiB", code=2)
        hub = self.hub()
        hub.faults = [Fault("config.json", where="hub", times=100, headers={"X-Long": "x" * (65 << 10)})]
        self.assert_refused(self.pull(hub, "--retries", "0"), "config.json", code=1)

    def test_a_listing_without_checksums_or_with_wrong_ones(self):
        for change in ({"blobId": None}, {"blobId": "../../x"}, {"size": -1}, {"size": 1.5},
                       {"lfs": {"sha256": "x", "size": 30}}, {"lfs": {"sha256": "0" * 64, "size": 31}}):
            with self.subTest(change=change):
                hub = self.hub()
                hub.edit_listing = lambda listing, change=change: listing | {
                    "siblings": [listing["siblings"][0] | change] + listing["siblings"][1:]}
                self.assert_refused(self.pull(hub), "listing of org/model", code=2)

    def test_a_model_that_latte_does_not_run(self):
        for config, word in ((b'{"model_type": "llama"}', "'llama' is not supported"), (b"{}", "config.json"),
                             (b'{"model_type": "deepseek_v3", "quantization_config": {"quant_method": "bitsandbytes"}}', "bitsandbytes"),
                             (b"no JSON", "config.json")):
            with self.subTest(config):
                self.setUp()
                hub = self.hub({**FILES, "config.json": config})
                done = self.pull(hub)
                self.assert_refused(done, word, "--any-model", code=None)
                self.assertFalse([path for path in hub.asked("storage")], "weights were downloaded")
                self.assertEqual(self.pull(hub, "--any-model").returncode, 0)

    def test_a_repository_without_safetensors(self):
        hub = self.hub({"config.json": b"{}", "model.bin": b"x"})
        self.assert_refused(self.pull(hub), "*.safetensors", "*.bin", code=2)

    def test_a_repository_larger_than_the_disk(self):
        hub = self.hub()
        def enlarge(listing):
            for sibling in listing["siblings"]:
                if "lfs" in sibling:
                    sibling["size"] = sibling["lfs"]["size"] = 1 << 49
            return listing
        hub.edit_listing = enlarge
        self.assert_refused(self.pull(hub), "free space", "HF_HUB_CACHE", code=1)


class Access(PullCase):
    def test_the_token_goes_to_the_hub_and_never_further(self):
        (self.home / "token").write_text(TOKEN + "\n")
        (self.home / "other").write_text(TOKEN)
        for where in ({}, {"HF_TOKEN": TOKEN, "HF_HOME": str(self.home / "none"), "HF_HUB_CACHE": str(self.cache)},
                      {"HUGGING_FACE_HUB_TOKEN": f" {TOKEN}\n"}, {"HF_TOKEN_PATH": str(self.home / "other")}):
            with self.subTest(where=where):
                hub = self.hub()
                hub.token = TOKEN
                for path in sorted(self.cache.rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
                self.assert_pulled(self.pull(hub, **where))
                self.assertTrue(all(h.get("Authorization") == f"Bearer {TOKEN}" for h in hub.asked("hub")))
                self.assertFalse(any("Authorization" in h for h in hub.asked("storage")))
                self.assertGreater(len(hub.asked("storage")), 0)

    def test_a_token_that_would_add_a_header(self):
        hub = self.hub()
        self.assert_refused(self.pull(hub, HF_TOKEN="hf_x\r\nX-Evil: 1"), "HF_TOKEN", "visible ASCII", code=2)
        self.assertEqual(hub.requests, [])

    def test_no_such_model_and_no_such_revision(self):
        hub = self.hub(repo="org/other")
        self.assert_refused(self.pull(hub), "org/model", "check the spelling", code=2)
        hub.repo = "org/model"
        done = subprocess.run([LATTE, "pull", "org/model@nope"], text=True, capture_output=True, timeout=60, env=self.environment(hub))
        self.assert_refused(done, "no branch, tag or commit 'nope'", code=2)
        for name in ("model", "org/", "org/../x", "org/model@", "https://huggingface.co/org/model"):
            done = subprocess.run([LATTE, "pull", name], text=True, capture_output=True, timeout=60, env=self.environment(hub))
            self.assertEqual(done.returncode, 2, name)
            self.assertIn("expected ORG/NAME", done.stderr)

    def test_gated_models(self):
        hub = self.hub()
        hub.token, hub.gated = TOKEN, True
        self.assert_refused(self.pull(hub), "accept the licence at " + hub.url + "/org/model", "set HF_TOKEN", code=2)
        self.assert_refused(self.pull(hub, HF_TOKEN=TOKEN), "accept the licence", "the one sent is from HF_TOKEN", code=2)
        hub.gated = "accepted"
        self.assert_pulled(self.pull(hub, HF_TOKEN=TOKEN))

    def test_redirects_that_are_not_followed(self):
        for location, text in (("ftp://localhost/x", "no http or https"), ("http://user:pw@localhost/x", "no http or https"), ("", "without an address")):
            with self.subTest(location=location):
                hub = self.hub()
                hub.linked = {"model.safetensors": {"Location": location}}
                self.assert_refused(self.pull(hub), text)

    def test_hosts_that_are_not_there(self):
        hub = self.hub()
        for endpoint, text in (("http://127.0.0.1:1", "no connection"), ("http://no.such.host.invalid", "no address"),
                               (hub.url.replace("http", "https"), "127.0.0.1"), ("ftp://x", "HF_ENDPOINT"), ("nonsense word", "HF_ENDPOINT")):
            with self.subTest(endpoint=endpoint):
                self.assert_refused(self.pull(hub, HF_ENDPOINT=endpoint), text)

    def test_offline(self):
        hub = self.hub()
        self.assert_refused(self.pull(hub, HF_HUB_OFFLINE="1"), "HF_HUB_OFFLINE", code=1)
        self.pull(hub)
        before = len(hub.requests)
        self.assert_pulled(self.pull(hub, HF_HUB_OFFLINE="1"))
        report = json.loads(self.pull(hub, "--json", HF_HUB_OFFLINE="1").stdout)
        self.assertEqual((report["path"], report["downloaded_bytes"]), (str(self.repo / "snapshots" / COMMIT), 0))
        self.assertEqual(len(hub.requests), before)


class Processes(PullCase):
    def arrived(self):
        """Whether two MiB of the weights are noted as fetched."""
        for state in self.repo.glob("blobs/*.latte.state"):
            ranges = [line.split()[1:] for line in state.read_text().splitlines() if line.startswith("missing ")]
            return sum(int(end) - int(begin) for begin, end in ranges) < len(WEIGHTS) - (2 << 20)
        return False

    def test_after_an_end_of_any_kind_the_next_pull_goes_on(self):
        for number, status in ((signal.SIGINT, 1), (signal.SIGTERM, 1), (signal.SIGKILL, -9)):
            with self.subTest(signal=number):
                self.setUp()
                hub = self.hub()
                hub.slow = 0.02
                process = self.start(hub)
                self.wait_for(self.arrived)
                process.send_signal(number)
                _, said = process.communicate(timeout=30)
                self.assertEqual(process.returncode, status, said)
                self.assertFalse((self.repo / "refs/main").exists())
                if status == 1:
                    self.assertIn("the same command continues", said)
                hub.slow, before = 0, len(hub.requests)
                done = self.pull(hub, "--json")
                report = json.loads(done.stdout)
                self.assertLess(report["downloaded_bytes"], len(WEIGHTS) - (1 << 20))
                self.assert_pulled(self.pull(hub))
                again = [path for where, path, _ in hub.requests[before:] if "resolve/" in path and "safetensors" not in path]
                self.assertEqual(again, [])

    def test_a_partial_file_that_somebody_damaged(self):
        hub = self.hub()
        hub.faults = [Fault("model.safetensors", cut=3 << 20), Fault("model.safetensors", times=100, cut=0)]
        self.pull(hub, "--connections", 1)
        hub.faults = []
        (partial,) = self.repo.glob("blobs/*.latte.incomplete")
        with open(partial, "r+b") as file:
            file.write(b"damaged")
        done = self.pull(hub)
        self.assert_pulled(done)
        self.assertIn("fetching it again", done.stderr)

    def test_a_blob_of_the_wrong_length_is_replaced(self):
        hub = self.hub()
        (self.repo / "blobs").mkdir(parents=True)
        (self.repo / "blobs" / hub.etag("model.safetensors")).write_bytes(b"short")
        self.assert_pulled(self.pull(hub))

    def test_two_pulls_of_one_model(self):
        hub = self.hub()
        hub.slow = 0.005
        processes = [self.start(hub) for _ in range(2)]
        said = [process.communicate(timeout=60) for process in processes]
        self.assertEqual([process.returncode for process in processes], [0, 0], said)
        self.assertIn("another process downloads this model", said[0][1] + said[1][1])
        self.assertEqual(sum(len(h) > 0 for h in hub.asked("storage")), 4)
        self.assert_content(FILES, READ)

    def test_a_disk_that_fills_up(self):
        hub = self.hub()
        command = f'ulimit -f 4096; exec "{LATTE}" pull org/model'  # 4 MiB per file
        done = subprocess.run(["bash", "-c", command], text=True, capture_output=True, timeout=60, env=self.environment(hub))
        self.assert_refused(done, "larger disk", code=1)

    def test_a_cache_that_cannot_be_written(self):
        hub = self.hub()
        self.cache.write_text("a file")
        done = self.pull(hub)
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(self.cache), done.stderr)


if __name__ == "__main__":
    LATTE = sys.argv.pop(1)
    unittest.main()
