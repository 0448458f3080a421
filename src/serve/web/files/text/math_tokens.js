// Where formulas are in Markdown: $…$, $$…$$, \(…\) and \[…\].

export const MAX_FORMULA = 2_000; // characters; a longer one stays text

const BLOCK = /^ {0,3}(?:\$\$([^$]+?)\$\$|\\\[([^]+?)\\\])[ \t]*(?:\n+|$)/;
const OPEN_BLOCK = /^ {0,3}(?:\$\$|\\\[)(?!.*(?:\$\$|\\\]))((?:.|\n(?!\n))*)$/; // while the answer streams
const INLINE = [
  /^\$\$([^$]+?)\$\$/,
  /^\\\[([^]+?)\\\]/,
  /^\\\(([^]+?)\\\)/,
  // A price is no formula: no space inside next to a dollar, no digit after it.
  /^\$((?![\s$])(?:\\[^]|[^$\\\n])*?[^\s\\$]|[^\s\\$])\$(?![\d$])/,
];

function blockAt(source) {
  const found = BLOCK.exec(source.slice(0, MAX_FORMULA));
  if (found) return { type: "formula", raw: found[0], tex: (found[1] ?? found[2]).trim(), display: true };
  const open = source.length < MAX_FORMULA ? OPEN_BLOCK.exec(source) : null;
  return open ? { type: "open_formula", raw: open[0], text: open[0] } : undefined;
}

// The first line of this paragraph that begins a formula.
function blockStart(source) {
  const end = source.indexOf("\n\n");
  const paragraph = end < 0 ? source : source.slice(0, end);
  for (const found of paragraph.matchAll(/^ {0,3}(?:\$\$|\\\[)/gm)) if (blockAt(source.slice(found.index))) return found.index;
  return undefined;
}

function inlineAt(source) {
  for (const [i, pattern] of INLINE.entries()) {
    const found = pattern.exec(source.slice(0, MAX_FORMULA));
    if (found && !found[1].includes("\n\n")) return { type: "formula", raw: found[0], tex: found[1].trim(), display: i < 2 };
  }
  return undefined;
}

export const mathExtensions = [
  {
    name: "formula_block",
    level: "block",
    // A line that begins a formula ends the paragraph before it.
    start: blockStart,
    tokenizer: blockAt,
  },
  {
    name: "formula",
    level: "inline",
    start: (source) => source.match(/\$|\\[([]/)?.index,
    tokenizer: inlineAt,
  },
];
