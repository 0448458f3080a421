"""latte pull into caches that hold equal files, are damaged, or belong to others, too.
Usage: cache_test.py LATTE_BINARY; needs only Python's standard library.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import unittest

import pull_test
from hub import COMMIT, Fault
from pull_test import FILES, READ, PullCase

SMALL = json.dumps({"text": random.Random(2).randbytes(300_000).hex()}).encode()
LARGE = random.Random(3).randbytes(17 << 20)  # more than is compared in every pull
EQUAL = {"config.json": b'{"model_type": "deepseek_v3"}\n', "a.json": SMALL, "b.json": SMALL, "c.json": SMALL,
         "additional_chat_templates/x.jinja": b"{{ x }}", "additional_chat_templates/y.jinja": b"{{ x }}", "empty.json": b"", "empty.txt": b"",
         "model-1.safetensors": LARGE, "model-2.safetensors": LARGE}


class EqualFiles(PullCase):
    def test_equal_files_are_one_download(self):
        hub = self.hub(EQUAL)
        done = self.pull(hub, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_content(EQUAL, EQUAL)
        report = json.loads(done.stdout)
        once = sum(len(data) for data in set(EQUAL.values()))
        self.assertEqual((report["bytes"], report["downloaded_bytes"]), (sum(map(len, EQUAL.values())), once))
        self.assertEqual(sum(file["missing_bytes"] for file in report["files"]), once)
        self.assertEqual(len(hub.asked("hub", "b.json")) + len(hub.asked("hub", "c.json")) + len(hub.asked("hub", "model-2")), 0)
        self.assertEqual(len(list((self.repo / "blobs").iterdir())), len(set(EQUAL.values())))
        self.assertEqual(json.loads(self.pull(hub, "--json").stdout)["downloaded_bytes"], 0)

    def test_a_mirror_that_sends_other_bytes_for_the_second_file(self):
        for name, where in (("b.json", "hub"), ("c.json", "hub"), ("y.jinja", "hub"), ("model-2.safetensors", "storage")):
            with self.subTest(name=name):
                self.setUp()
                hub = self.hub(EQUAL)
                evil = bytes(len(EQUAL.get(name, b"{{ x }}")))
                hub.faults = [Fault(name, where=where, times=100, body=evil)]
                hub.slow = 0.001
                self.pull(hub)
                for blob in (self.repo / "blobs").iterdir():
                    self.assertIn(blob.read_bytes(), EQUAL.values(), blob.name)
                self.assertEqual(self.pull(hub).returncode, 0)
                self.assert_content(EQUAL, EQUAL)

    def test_one_checksum_with_two_sizes(self):
        hub = self.hub(EQUAL)
        def lie(listing):
            for sibling in listing["siblings"]:
                if sibling["rfilename"] == "b.json":
                    sibling["size"] += 1
            return listing
        hub.edit_listing = lie
        self.assert_refused(self.pull(hub), "'a.json' and 'b.json'", "one size", code=2)


class DamagedCache(PullCase):
    def setUp(self):
        super().setUp()
        self.server = self.hub(FILES | {"model.safetensors": LARGE})
        self.assertEqual(self.pull(self.server).returncode, 0)

    def blob(self, name):
        return self.repo / "blobs" / self.server.etag(name)

    def assert_mended(self, *arguments):
        done = self.pull(self.server, *arguments)
        self.assert_pulled(done, self.server.files)
        for name in READ:
            self.assertFalse(self.blob(name).is_symlink(), name)
        return done

    def damage(self, name):
        """Ways to damage the blob of a file, by name."""
        blob, data = self.blob(name), self.server.files[name]
        flipped = bytes([data[0] ^ 1]) + data[1:]
        elsewhere = self.home / "elsewhere"

        def write(content):
            with open(blob, "r+b") as file:
                file.truncate(len(content))
                file.write(content)

        def replace(make):
            blob.unlink()
            make()

        def link():
            elsewhere.write_bytes(flipped)
            blob.symlink_to(elsewhere)
        return {"truncated": lambda: write(data[:-1]), "longer": lambda: write(data + b"x"), "flipped": lambda: write(flipped),
                "empty": lambda: write(b""), "link": lambda: replace(link), "dangling": lambda: replace(lambda: blob.symlink_to("/nowhere")),
                "pipe": lambda: replace(lambda: os.mkfifo(blob)), "gone": blob.unlink}

    def test_a_damaged_blob_is_fetched_again(self):
        for name in ("config.json", "model.safetensors"):
            for way, damage in self.damage(name).items():
                with self.subTest(name=name, way=way):
                    damage()
                    done = self.assert_mended()
                    self.assertEqual("is damaged" in done.stderr, way == "flipped", done.stderr)

    def test_a_folder_in_the_place_of_a_blob_is_named(self):
        blob = self.blob("config.json")
        blob.unlink()
        blob.mkdir()
        (blob / "keep").write_text("x")
        done = self.pull(self.server)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"{blob}: expected a file of the cache, found a folder", done.stderr)
        self.assertTrue((blob / "keep").exists())

    def test_a_large_blob_is_read_once_unless_it_changes(self):
        name, record = self.blob("model.safetensors"), next((self.cache / ".locks/models--org--model").glob("latte-verified-*"))
        self.assertIn(name.name, record.read_text())
        # A flipped byte that leaves every stamp as it was is found by --verify. The stamp holds the time of the last change
        # of the inode, which nobody can set, so the record is changed instead.
        data = bytearray(name.read_bytes())
        data[5] ^= 1
        name.write_bytes(data)
        info = name.stat()
        times = [f"{nanoseconds // 10**9}.{nanoseconds % 10**9:09}" for nanoseconds in (info.st_mtime_ns, info.st_ctime_ns)]
        record.write_text(f"latte-verified-1\n{name.name} {info.st_ino} {info.st_size} {' '.join(times)}\n")
        self.assertEqual(self.pull(self.server).returncode, 0)
        self.assertEqual(name.read_bytes(), bytes(data), "it was read, although the record says that it is as it was")
        self.assertIn("is damaged", self.assert_mended("--verify").stderr)

    def test_records_that_are_none(self):
        record = next((self.cache / ".locks/models--org--model").glob("latte-verified-*"))
        for text in (b"", b"latte-verified-1\n", b"latte-verified-1\nx\n", b"\0" * 100, b"latte-verified-2\n" + record.read_bytes()[17:]):
            with self.subTest(text=text):
                record.write_bytes(text)
                self.damage("model.safetensors")["flipped"]()
                self.assert_mended()
        record.unlink()
        record.mkdir()
        self.assertNotEqual(self.pull(self.server).returncode, 0)

    def test_verify_needs_the_listing(self):
        for more in ({"HF_HUB_OFFLINE": "1"}, {}):
            done = self.pull(self.server, "--verify", *([] if more else ["--dry-run"]), **more)
            self.assertEqual(done.returncode, 2)
            self.assertIn("--verify", done.stderr)


class SharedCache(PullCase):
    """What others may have put into a cache that they can write to."""

    def setUp(self):
        super().setUp()
        self.elsewhere = self.home / "elsewhere"
        self.elsewhere.mkdir()

    def assert_untouched(self):
        self.assertEqual(list(self.elsewhere.iterdir()), [])

    def plant(self, path, target=None):
        path = self.cache / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target or self.elsewhere)
        return path

    def test_links_in_the_place_of_folders(self):
        model = "models--org--model"
        for place in (f"{model}/snapshots/{COMMIT}", f"{model}/snapshots", f"{model}/blobs", f"{model}/refs", ".locks", f".locks/{model}",
                      f"{model}/snapshots/{COMMIT}/additional_chat_templates"):
            with self.subTest(place=place):
                self.setUp()
                path = self.plant(place)
                done = self.pull(self.hub())
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{path}: expected a folder of the cache, found a link", done.stderr)
                self.assert_untouched()
        self.setUp()
        path = self.plant(f"{model}/refs/refs")
        done = subprocess.run([pull_test.LATTE, "pull", "org/model@refs/pr/1"], text=True, capture_output=True, timeout=60,
                              env=self.environment(self.hub()))
        self.assertIn(f"{path}: expected a folder of the cache, found a link", done.stderr)
        self.assert_untouched()

    def test_links_in_the_place_of_files(self):
        hub = self.hub()
        oid = hub.etag("config.json")
        for place in ("models--org--model/refs/main", f"models--org--model/blobs/{oid}", f"models--org--model/blobs/{oid}.latte.incomplete",
                      f"models--org--model/blobs/{oid}.latte.state", "CACHEDIR.TAG", f".locks/models--org--model/latte-verified-{os.geteuid()}",
                      f"models--org--model/snapshots/{COMMIT}/config.json"):
            with self.subTest(place=place):
                self.setUp()
                self.plant(place, self.elsewhere / "made")
                self.assertEqual(self.pull(hub).returncode, 0)
                self.assert_content(FILES, READ)
                self.assert_untouched()

    def test_what_stands_in_the_place_of_the_lock(self):
        for make, found in ((lambda path: path.symlink_to(self.elsewhere / "made"), "a link"), (os.mkfifo, "something else"),
                            (lambda path: path.mkdir(), "a folder")):
            with self.subTest(found=found):
                self.setUp()
                lock = self.cache / ".locks/models--org--model/latte-pull.lock"
                lock.parent.mkdir(parents=True)
                make(lock)
                done = self.pull(self.hub())
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{lock}: expected a lock file of the cache, found {found}", done.stderr)
                self.assert_untouched()

    def test_a_partial_file_that_others_can_write_is_begun_anew(self):
        """It has a second name, or is open to everybody: whoever holds it could write after it was verified."""
        hub = self.hub()
        blobs = self.repo / "blobs"
        for spoil in (lambda path: os.link(path, self.home / "second"), lambda path: os.chmod(path, 0o666)):
            blobs.mkdir(parents=True)
            path = blobs / (hub.etag("config.json") + ".latte.incomplete")
            path.write_bytes(FILES["config.json"])
            (blobs / (hub.etag("config.json") + ".latte.state")).write_text(f"latte-pull-1\nsize {len(FILES['config.json'])}\ntag \nend\n")
            spoil(path)
            with open(path, "r+b") as held:
                self.assert_pulled(self.pull(hub))
                held.write(b"evil")
            self.assert_content(FILES, READ)
            self.assertEqual((blobs / hub.etag("config.json")).stat().st_mode & 0o022, 0)
            shutil.rmtree(self.cache)

    def test_folders_that_everybody_may_write_to_are_refused(self):
        hub = self.hub()
        for folder in ("", "models--org--model", "models--org--model/blobs", "models--org--model/snapshots", ".locks"):
            with self.subTest(folder=folder):
                path = self.cache / folder if folder else self.cache
                path.mkdir(parents=True, exist_ok=True)
                path.chmod(0o777)
                done = self.pull(hub)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(f"{path}: everybody may write into this folder of the cache (mode 777)", done.stderr)
                self.assertIn("chmod o-w", done.stderr)
                path.chmod(0o755)
        self.assert_pulled(self.pull(hub))

    @unittest.skipIf(os.geteuid() != 0, "needs a file of another user: run as root")
    def test_a_cache_of_another_user_is_named(self):
        self.cache.mkdir()
        os.chown(self.cache, 12345, 0)
        done = self.pull(self.hub())
        self.assert_pulled(done)
        self.assertIn(f"note: {self.cache}: the cache may also be changed by user 12345, whom it belongs to", done.stderr)
        os.chown(self.cache, 0, 12345)
        self.cache.chmod(0o775)
        self.assertIn("the members of group 12345 (mode 775)", self.pull(self.hub()).stderr)

    def test_no_umask_opens_what_is_made(self):
        hub = self.hub()
        done = subprocess.run(["bash", "-c", f'umask 000; exec "{pull_test.LATTE}" pull org/model'], text=True, capture_output=True, timeout=60,
                              env=self.environment(hub))
        self.assert_pulled(done)
        for path in self.cache.rglob("*"):
            if path.is_dir() or path.parent.name == "blobs":
                self.assertEqual(path.lstat().st_mode & 0o002, 0, path)
        self.assert_pulled(self.pull(hub))


if __name__ == "__main__":
    pull_test.LATTE = sys.argv.pop(1)
    unittest.main()
