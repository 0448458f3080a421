"""Each lint of tools/ names what it refuses: file, line or folder, and what to write. Usage: lint_test.py SOURCE_DIR"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = None
RULES = "skip old/\nlater\n# a comment\n\\bfrobs?\\b\tmultiply\tprivate\n\\bquux\\b\tpanel\tprivate\tsrc/a src/b\n"


class Lint(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in ("src", "include", "apps", "tests"):
            (self.root / name).mkdir()
        subprocess.run(["git", "init", "-q", "."], cwd=self.root, check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def lint(self, tool):
        done = subprocess.run([sys.executable, SOURCE / "tools" / tool, "."], cwd=self.root, text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def refused(self, tool, *starts):
        code, lines = self.lint(tool)
        self.assertEqual(code, 1, lines)
        self.assertEqual(len(lines), len(starts), lines)
        for line, start in zip(lines, starts):
            self.assertTrue(line.startswith(start), f"expected {start!r}, found {line!r}")

    def test_words_are_found_in_comments_strings_and_prose(self):
        self.write("tools/words.txt", RULES)
        self.write("src/a/x.cc", '// We\n// frob\nint frob;\nconst char* s = "a frob";\n/* one\n   frob */ char c = \'"\'; // quux\n')
        self.write("src/c/x.cc", "// quux\n")
        self.write("tool.py", '"""Says\nfrob."""\nfrob = 1  # frobs\n')
        self.write("CMakeLists.txt", "add(frob) \n  # frob\n")
        self.write("doc.md", "One\nfrob.\n```\nfrob\n```\n[text](frob.md) frob\n")
        self.write("old/doc.md", "frob\n")
        self.refused("check_words.py", 'CMakeLists.txt:2: "frob": write multiply (private)', "doc.md:2:", "doc.md:6:", "src/a/x.cc:2:",
                     "src/a/x.cc:4:", "src/a/x.cc:6:", 'src/a/x.cc:6: "quux"', "tool.py:2:", "tool.py:3:")

    def test_a_pattern_matches_across_the_lines_of_a_comment(self):
        self.write("tools/words.txt", "\\bso that\\b[^.]*\\bso that\\b\ttwo sentences\tchain\n")
        self.write("src/a.h", "// So, so that\n// x, so\n// that y.\n\n// so that\n\n// so that\n")
        self.refused("check_words.py", 'src/a.h:1: "so that x, so that"')

    def test_a_malformed_rule_is_named(self):
        self.write("tools/words.txt", "# rules\nfrob\tmultiply\n")
        done = subprocess.run([sys.executable, SOURCE / "tools/check_words.py", "."], cwd=self.root, text=True, capture_output=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("tools/words.txt:2: expected pattern", done.stderr)

    def test_clean_words_pass(self):
        self.write("tools/words.txt", RULES)
        self.write("src/a/x.cc", "int frob = quux;  // multiplies\n")
        self.assertEqual(self.lint("check_words.py")[0], 0)

    def test_intrinsics_stay_in_their_room(self):
        self.write("src/kernels/cpu/isa/a.h", "_mm512_add_ps(a, b);\n")
        self.write("src/kernels/cpu/gemm/a.h", "// _mm512_add_ps\n_tile_zero(0);\n")
        self.write("src/base/a.cc", "_mm512_add_ps(a, b); __builtin_ia32_pause();\n")
        self.refused("check_layers.py", "src/base/a.cc: _mm512_add_ps", "src/kernels/cpu/gemm/a.h: _tile_zero")

    def test_only_the_kernels_name_an_instruction_set(self):
        self.write("src/kernels/a.h", "Isa isa;\n")
        self.write("src/models/a.h", 'const char* s = "Isa";  // Isa\nIsas isa;\n')
        self.write("apps/a.cc", "Isa isa;\n")
        self.write("apps/b.cc", "x86::kAvx2;\n")
        self.refused("check_layers.py", "apps/a.cc: Isa", "apps/b.cc: x86::")

    def test_a_full_folder_is_named(self):
        for number in range(26):
            self.write(f"src/base/{number}.h", "")
            self.write(f"tests/e2e/{number % 25}.py", "")
        self.refused("check_layers.py", "src/base: 26 source files at one level, at most 25")

    def test_includes_go_downwards(self):
        self.write("src/base/a.h", '#include "src/tensor/a.h"\n')
        self.write("src/jobs/a.h", "#include <nlohmann/json.hpp>\n")
        self.refused("check_layers.py", "", "src/jobs/a.h: <nlohmann/json.hpp> belongs to src/base/json.")

    def test_documents_name_what_exists(self):
        self.write("src/a.h", "")
        self.write("ARCHITECTURE.md", "```text\nlatte/\n├── src/\n├── gone/\n```\n[a](b.md) and `src/none.h`\n")
        self.refused("check_docs.py", "ARCHITECTURE.md: link to b.md", "ARCHITECTURE.md: names `src/none.h`",
                     "ARCHITECTURE.md: the tree has gone")

    def test_every_picture_has_a_page(self):
        self.write("src/a.h", "")
        self.write("docs/plots/shown.svg", "")
        self.write("docs/plots/lost.svg", "")
        self.write("ARCHITECTURE.md", "```text\nlatte/\n├── src/\n```\n![shown](docs/plots/shown.svg)\n")
        self.write("bench/notebook/a.md", "![lost](../../docs/plots/lost.svg)\n")
        self.refused("check_docs.py", "docs/plots/lost.svg: no page shows it")

    def test_every_page_is_on_a_shelf(self):
        self.write("src/a.h", "")
        self.write("ARCHITECTURE.md", "```text\nlatte/\n├── src/\n```\n")
        self.write("docs/README.md", "[a](a.md)\n")
        self.write("docs/a.md", "")
        self.write("docs/b/c.md", "")
        self.refused("check_docs.py", "docs/b/c.md: docs/README.md does not list it")


if __name__ == "__main__":
    SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
