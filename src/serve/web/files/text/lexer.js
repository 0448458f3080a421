// Markdown to tokens, by marked's lexer with bounds. Its own renderer, which makes HTML, is never called.
import { libraries } from "../libraries/libraries.js";
import { mathExtensions } from "./math_tokens.js";

const MAX_DEPTH = 12; // of quotes and lists; what is deeper is text
// Of one paragraph, cell or item: marked's time grows with their square.
const MAX_INLINE = 8_000; // characters
const MAX_MARKS = 1_000;
const MAX_STARS = 300;

// Link definitions. marked's own rule leaves no token, and then nobody knows where the next block begins.
const DEFINITION = /^ {0,3}\[([^\]\n^][^\]\n]{0,200})\]: *<?([^\s<>]{1,2000})>?(?: +(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\)))? *(?:\n+|$)/;
const definition = {
  name: "definition",
  level: "block",
  tokenizer(source) {
    const found = DEFINITION.exec(source);
    if (!found) return undefined;
    const tag = found[1].toLowerCase().replace(/\s+/g, " ");
    const link = { href: found[2], title: "" };
    this.lexer.tokens.links[tag] ??= link;
    return { type: "definition", raw: found[0], tag, link };
  },
};

async function load() {
  if (!libraries.marked) return null;
  try {
    await import("../libraries/marked.js");
    const { marked } = globalThis;
    const nothing = () => undefined;
    marked.use({
      gfm: true,
      mangle: false,
      // HTML is text: its blocks hold Markdown like any other paragraph.
      tokenizer: { html: nothing, def: nothing },
      extensions: [definition, ...mathExtensions],
    });
    return marked;
  } catch {
    return null; // the page works without it
  }
}

const marked = await load();

const Bounded = marked && class extends marked.Lexer {
  depth = 0;

  blockTokens(source, tokens = []) {
    if (this.depth >= MAX_DEPTH) {
      tokens.push({ type: "plain", raw: source, text: source });
      return tokens;
    }
    ++this.depth;
    try {
      return super.blockTokens(source, tokens);
    } finally {
      --this.depth;
    }
  }

  inlineTokens(source, tokens = []) {
    if (isSmall(source)) return super.inlineTokens(source, tokens);
    tokens.push({ type: "plain", raw: source, text: source });
    return tokens;
  }
};

function isSmall(source) {
  return source.length <= MAX_INLINE && (source.length <= MAX_STARS ||
    ((source.match(/[[\]`<!$~\\@]/g)?.length ?? 0) <= MAX_MARKS && (source.match(/[*_]/g)?.length ?? 0) <= MAX_STARS));
}

export const hasMarkdown = marked !== null;

// The blocks of a text: tokens whose `raw` together are the text. links: definitions that are known, by their tag. Null if marked fails.
export function lex(text, links) {
  try {
    const lexer = new Bounded();
    lexer.tokens.links = Object.create(links);
    return lexer.lex(text);
  } catch {
    return null; // marked throws on no text that is known; its stack may end on an unknown one
  }
}
