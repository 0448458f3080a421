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
        for name in ("src", "lab", "include", "apps", "tests"):
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

    def test_long_lines_are_refused_but_for_raw_strings_and_addresses(self):
        self.write("src/a.h", "// " + "x" * 97 + "\n// " + "y" * 98 + "\n// https://" + "z" * 98 + "\nint λ;  // " + "é" * 89 + "\n")
        self.write("src/b.cc", 'auto s = R"json(' + "x" * 100 + "\n" + "y" * 101 + '\n)json";  // ' + "z" * 99 + "\n// " + "w" * 98 + "\n")
        self.refused("check_length.py", "src/a.h:2: 101 columns", "src/b.cc:4: 101 columns")

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

    def test_kernels_of_gpus_are_written_in_words(self):
        self.write("src/kernels/cuda/words/a.cuh", '#include <cuda.h>\nint t = threadIdx.x; asm("");\n')
        self.write("src/kernels/cuda/any/a.cuh", "#include <cuda_bf16.h>\n// threadIdx\nint t = blockIdx.x;\n")
        self.refused("check_layers.py", "src/kernels/cuda/any/a.cuh: <cuda_bf16.h>", "src/kernels/cuda/any/a.cuh: blockIdx")

    def test_a_full_folder_is_named(self):
        for number in range(26):
            self.write(f"src/base/{number}.h", "")
            self.write(f"tests/e2e/{number % 25}.py", "")
        self.refused("check_layers.py", "src/base: 26 source files at one level, at most 25")

    def test_a_header_that_only_tests_include_is_named(self):
        self.write("src/base/a.cc", '#include "src/base/a.h"\n')
        self.write("src/base/a.h", "")
        self.write("src/base/a_test.cc", '#include "src/base/a.h"\n#include "src/base/b_test.h"\n')
        self.write("src/base/b_test.h", "")
        self.write("src/base/used.h", "")
        self.write("apps/main.cc", '#include "src/base/used.h"\n')
        self.write("tests/support/c.h", '#include "src/base/a.h"\n')
        self.refused("check_layers.py", "src/base/a.h: no other file of the product includes it")

    def test_includes_go_downwards(self):
        self.write("src/base/a.h", '#include "src/tensor/a.h"\n')
        self.write("src/jobs/a.h", "#include <nlohmann/json.hpp>\n")
        self.write("src/jobs/b.h", '#include "lab/a.h"\n')
        self.refused("check_layers.py", "src/base/a.h: base (L0)", "src/jobs/b.h: jobs (L8) may not include lab (L9)",
                     "src/jobs/a.h: <nlohmann/json.hpp> belongs to src/base/json.")

    def test_documents_name_what_exists(self):
        self.write("src/a.h", "")
        self.write("ARCHITECTURE.md", "```text\nlatte/\n├── src/\n├── gone/\n```\n[a](b.md) and `src/none.h`\n")
        self.refused("check_docs.py", "ARCHITECTURE.md: link to b.md", "ARCHITECTURE.md:6: names src/none.h",
                     "ARCHITECTURE.md: the tree has gone")

    def write_documents(self, **texts):
        """A repository of which check_docs.py finds nothing to say, but for these texts: name=text of docs/name.md."""
        self.write("src/a.h", "")
        self.write("ARCHITECTURE.md", "```text\nlatte/\n├── src/\n```\n")
        self.write("docs/README.md", "".join(f"[{name}]({name}.md)\n" for name in ("cli", "options", *texts)))
        self.write("docs/options.md", "")
        used = [(tool, flag) for tool, flags in self.tools().items() for flag in flags.split()]
        self.write("docs/cli.md", "## latte run\n| `-p, --prompt TEXT` | not --gone |\n## latte bench gemm\n| `--rows N` | |\n"
                   + "```sh\n" + "".join(f"{tool} {flag}\n" for tool, flag in used) + "```\n")
        for name, text in texts.items():
            self.write(f"docs/{name}.md", text)

    def tools(self):
        sys.path.insert(0, str(SOURCE / "tools"))
        self.addCleanup(sys.path.pop, 0)
        import doc_flags
        return doc_flags.TOOLS

    def test_documents_name_paths_files_and_tests_that_exist(self):
        self.write_documents(a="```\nsrc/gone.cc, src/{a,b}.h and src/<name>/x\n```\n`a.h`, `b.cc`, b_test, c_test, e2e_c_test, d_test\n")
        self.write("tests/e2e/c_test.py", "")
        self.write("tests/CMakeLists.txt", "latte_test(d_test)\n")
        self.write("src/c.h", "// See docs/none.md.\nconst char* s = \"src/none.h\";\n")
        self.refused("check_docs.py", "docs/a.md:2: names src/gone.cc", "docs/a.md:2: names src/b.h", "src/c.h:1: names docs/none.md",
                     "docs/a.md:4: names b.cc", "docs/a.md:4: names b_test", "docs/cli.md:2: names --gone")

    def test_documents_name_members_that_exist(self):
        self.write("src/b.cc", "namespace n::m {\nstruct Base { int (*pointer)(int given); int size{3}; };\n"
                   "class A final : public Base {\n public:\n  enum class Kind { kOne, kTwo = 2 };\n  void Call(int argument) { int local; }\n};\n"
                   "using B = A;\n}  // namespace n::m\nint x = foreign::kValue; // A::Remark\nconst char* s = \"A::Text\";\n")
        self.write("src/c.h", "// B::Call, V::size and V::none\ntemplate <class V> int F(); // C::Call\n")
        names = "n::m m::A A::Call Kind::kTwo A::Kind::kOne A::size B::pointer foreign::kValue std::anything"
        unknown = "A::argument A::local A::given A::Kind::kFour A::Remark A::Text n::A Gone::x"
        self.write_documents(a=f"{names}\n{unknown}\n```\nB::Gone\n```\n")
        self.refused("check_docs.py", *(f"docs/a.md:2: names {name}" for name in unknown.split()),
                     "docs/a.md:4: names B::Gone, but B has no Gone", "src/c.h:1: names V::none",
                     "src/c.h:2: names C::Call, but there is no class or namespace C", "docs/cli.md:2: names --gone")

    def test_documents_name_flags_that_exist(self):
        self.write("tools/x.py", 'parser.add_argument("--cases")\n')
        self.write("src/c.h", "// --prompt and --promt, or --NAME\n")
        self.write_documents(
            a="`--prompt`, `--rows`, --promt\n`latte run --rows` `latte bench gemm --rows --no_such`\n",
            b="```sh\ntools/x.py --cases \\\n  --other\nmpirun --bind-to none latte run --prompt x --bnd\n```\n`--cases`\n",
            c="`--cases` `--bind-to`\n")
        self.refused("check_docs.py", "src/c.h:1: names --promt", "docs/a.md:1: names --promt", "docs/a.md:2: names --rows", "docs/a.md:2: names --no_such",
                     "docs/b.md:3: names --other", "docs/b.md:4: names --bnd", "docs/c.md:1: names --cases", "docs/c.md:1: names --bind-to",
                     "docs/cli.md:2: names --gone")

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
