"""Writes src/text/unicode/case_tables.cc: how characters change case, as Python's str has it.

    python3 tools/tokenizer/make_case_tables.py

The tables have the Unicode version of the Python that runs this.
"""

import pathlib
import unicodedata

OUT = pathlib.Path(__file__).resolve().parents[2] / "src/text/unicode/case_tables.cc"
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def runs(pairs):
    """(first, last, step, delta) of characters that change by the same number."""
    out = []
    for c, changed in pairs:
        delta = ord(changed) - ord(c)
        if out:
            first, last, step, same = out[-1]
            gap = ord(c) - last
            if delta == same and (gap == step or (first == last and gap in (1, 2))):
                out[-1] = (first, ord(c), gap, delta)
                continue
        out.append((ord(c), ord(c), 1, delta))
    return out


def table(name, pairs):
    items = [f"{{0x{a:X}, 0x{b:X}, {s}, {d}}}," for a, b, s, d in runs([p for p in pairs if len(p[1]) == 1])]
    longer = [f"{{0x{ord(c):X}, {{{', '.join(f'0x{ord(x):X}' for x in t)}}}}}," for c, t in pairs if len(t) > 1]
    return (f"constexpr CaseRun k{name}Runs[] = {{\n" + wrap(items) + "};\n" +
            f"constexpr CaseLonger k{name}Longer[] = {{\n" + wrap(longer) + "};\n")


def wrap(items):
    lines, line = [], "   "
    for item in items:
        if len(line) + 1 + len(item) > 100:
            lines.append(line)
            line = "   "
        line += " " + item
    return "".join(text + "\n" for text in lines + [line])


def main():
    lower = [(c, c.lower()) for c in CHARACTERS if c.lower() != c]
    upper = [(c, c.upper()) for c in CHARACTERS if c.upper() != c]
    title = [(c, c.title()) for c in CHARACTERS if c.title() != c.upper()]
    OUT.write_text(f"""// Unicode {unicodedata.unidata_version}; written by tools/tokenizer/make_case_tables.py.
#include "src/text/unicode/case_tables.h"

namespace latte {{
namespace {{

// clang-format off
{table("Lower", lower)}
{table("Upper", upper)}
// Where the title case is not the upper case.
{table("Title", title)}// clang-format on

}}  // namespace

const CaseTable kLowerCase = {{kLowerRuns, kLowerLonger}};
const CaseTable kUpperCase = {{kUpperRuns, kUpperLonger}};
const CaseTable kTitleCase = {{kTitleRuns, kTitleLonger}};

}}  // namespace latte
""")


if __name__ == "__main__":
    main()
