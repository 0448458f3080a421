// Text without Markdown: paragraphs, and code between fences. For the user's own messages, which stay as they were written, and for a
// build without marked.

const FENCE = /^ {0,3}(`{3,}|~{3,})(.*)$/;
const PIECE = 20_000; // characters

// → [{type: "plain" or "code", raw, text, lang}]
export function plainBlocks(text) {
  const blocks = [];
  let fence = null; // {mark, lang}
  let lines = [];
  const end = (type) => {
    const joined = lines.join("\n");
    lines = [];
    if (type === "code") blocks.push({ type, text: joined, lang: fence.lang });
    else if (joined.trim()) blocks.push({ type, text: joined.replace(/^\n+|\n+$/g, "") });
  };
  for (const line of text.split("\n")) {
    const found = FENCE.exec(line);
    if (!fence && found && !found[2].includes("`")) {
      end("plain");
      fence = { mark: found[1], lang: found[2].trim() };
    } else if (fence && found && found[1].startsWith(fence.mark) && !found[2].trim()) {
      end("code");
      fence = null;
    } else {
      lines.push(line);
    }
  }
  end(fence ? "code" : "plain");
  return blocks;
}

// Pieces of a text that a browser lays out fast. They end between words where there are words, and never inside a character.
export function pieces(text) {
  const out = [];
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + PIECE, text.length);
    if (end < text.length) {
      const line = text.lastIndexOf("\n", end - 1);
      const space = line > at + PIECE / 2 ? line : text.lastIndexOf(" ", end - 1);
      if (space > at + PIECE / 2) end = space + 1;
      else if (/[\uD800-\uDBFF]/.test(text[end - 1])) ++end;
    }
    out.push(text.slice(at, end));
    at = end;
  }
  return out;
}
