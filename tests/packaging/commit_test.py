"""The commit that `latte --version` prints, for a repository, a changed one and an archive. Usage: commit_test.py CMAKE SOURCE_DIR"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE = ROOT = None


def git(folder, *words):
    user = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    return subprocess.run(["git", "-C", str(folder), *user, *words], check=True, capture_output=True, text=True).stdout.strip()


class Commit(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="latte commit ")))
        self.source = self.folder / "source"
        (self.source / "src").mkdir(parents=True)
        (self.source / "src/file").write_text("1")

    def header(self, source=None):
        header = self.folder / "latte_commit.h"
        subprocess.run([CMAKE, f"-DSOURCE={source or self.source}", f"-DHEADER={header}", "-P", str(ROOT / "cmake/commit.cmake")], check=True)
        return header.read_text()

    def commit(self):
        git(self.source, "init", "-q")
        git(self.source, "add", "-A")
        git(self.source, "commit", "-q", "-m", "first")
        return git(self.source, "rev-parse", "HEAD")[:12]

    def test_an_archive_has_none(self):
        self.assertEqual(self.header(), '#define LATTE_COMMIT ""\n')

    def test_a_repository_has_its_own(self):
        commit = self.commit()
        self.assertEqual(self.header(), f'#define LATTE_COMMIT "{commit}"\n')
        (self.source / "src/new").write_text("not part of any commit")
        self.assertEqual(self.header(), f'#define LATTE_COMMIT "{commit}"\n')
        (self.source / "src/file").write_text("2")
        self.assertEqual(self.header(), f'#define LATTE_COMMIT "{commit} with changes"\n')

    def test_an_archive_in_another_repository_has_none(self):
        self.commit()
        self.assertEqual(self.header(self.source / "src"), '#define LATTE_COMMIT ""\n')

    def test_a_repository_without_commits_has_none(self):
        git(self.source, "init", "-q")
        self.assertEqual(self.header(), '#define LATTE_COMMIT ""\n')

    def test_the_header_of_the_same_commit_is_not_written_again(self):
        self.commit()
        self.header()
        before = (self.folder / "latte_commit.h").stat().st_mtime_ns
        self.header()
        self.assertEqual((self.folder / "latte_commit.h").stat().st_mtime_ns, before)


if __name__ == "__main__":
    CMAKE, ROOT = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=sys.argv[:1])
