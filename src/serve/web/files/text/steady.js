// What is shown of a text that still grows: marks that have not ended yet get an end, and a line that could become anything waits for the
// next characters. Without it, text would appear in one form and jump to another.

const FAR = 2_000; // characters at the end of the text that matter
const OPEN_LINE = /^[ >]{0,40}(?:[-=*_+#>`~]{1,2}|[-=]+|\d{1,9}[.)]?) *$/;
// A table before the line that shows that it is one.
const TABLE_HEAD = /^ {0,3}\|[^\n]*(?:\n[|:\- ]*)?$/;
const OPEN_LINK = /!?\[([^\]\n]*)(?:\](?:\([^)\n]*)?)?$/;

// Ends for `code`, **strong** and *emphasis*, the inner one first.
function missingEnds(paragraph) {
  const plain = paragraph.replace(/(`+)[^`][^]*?\1/g, "");
  if (plain.includes("`")) return "`";
  if (plain.includes("$")) return "";
  const open = [];
  for (const [mark] of plain.replace(/^\s*[*+-]\s/gm, "").matchAll(/\*\*|(?<=^|\s|\()\*(?=\S)|(?<=\S)\*/gm)) {
    if (open.at(-1) === mark) open.pop();
    else open.push(mark);
  }
  return open.reverse().join("");
}

// inCode: the text ends inside of code between fences.
export function steady(text, inCode) {
  const line = text.slice(text.lastIndexOf("\n") + 1);
  if (inCode) return (/^ {0,3}[`~]{1,2}$/.test(line) ? text.slice(0, -line.length) : text).replace(/\n$/, "");
  if (/^[ >]*(?:`{3}|~{3})/.test(line)) return text; // the end of code
  const shown = line.length < FAR && OPEN_LINE.test(line) ? text.slice(0, text.length - line.length) : text;
  const start = Math.max(shown.includes("\n\n") ? shown.lastIndexOf("\n\n") + 2 : 0, shown.length - FAR, 0);
  const paragraph = shown.slice(start).replace(OPEN_LINK, "$1").replace(/(?:[*_]+|`+)$/, "");
  if (TABLE_HEAD.test(paragraph)) return shown.slice(0, start);
  return (shown.slice(0, start) + paragraph).trimEnd() + missingEnds(paragraph);
}
