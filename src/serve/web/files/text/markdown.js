// A text that grows, shown as Markdown. Blocks that have ended keep their elements; only the last one is read again.
import { colour } from "./code.js";
import { hasMarkdown, lex } from "./lexer.js";
import { typeset } from "./math.js";
import { morphChildren } from "./morph.js";
import { Budget, TooMuch, blockNodes, plainElements } from "./nodes.js";
import { plainBlocks } from "./plain.js";
import { schedule } from "./schedule.js";
import { Source } from "./source.js";
import { steady } from "./steady.js";

const WINDOW = 20_000; // characters that are read at once; a block that is longer becomes plain text
const MAX_ELEMENTS = 10_000; // of one answer; the rest becomes plain text

const isText = (token) => token.type !== "space" && token.type !== "definition";

// A fence that does not end in the first window: its code, as one token. Null: the text begins with none.
function longCode(text) {
  const open = /^ {0,3}(`{3,}|~{3,})([^\n]*)\n/.exec(text);
  if (!open) return null;
  const close = new RegExp(`\n {0,3}${open[1]}[${open[1][0]}]* *(?:\n+|$)`).exec(text.slice(open[0].length - 1));
  const start = open[0].length;
  if (!close) return { type: "code", lang: open[2], text: text.slice(start), raw: text, closed: false };
  const end = start - 1 + close.index;
  return { type: "code", lang: open[2], text: text.slice(start, Math.max(start, end)), raw: text.slice(0, end + close[0].length), closed: true };
}

export class Rendered {
  // plain: no Markdown but code between fences.
  constructor(root, { plain = false } = {}) {
    this.root = root;
    this.isPlain = plain || !hasMarkdown;
    this.links = Object.create(null); // their definitions
    this.text = "";
    this.final = true;
    this.work = () => this.update();
    this.restart();
  }

  restart() {
    this.source = new Source();
    this.budget = new Budget(MAX_ELEMENTS);
    this.at = 0; // of the converted text: here the first block begins that may still change
    this.kept = 0; // child nodes of the blocks before
  }

  // Shows the text with the next frames. final: nothing more will be added.
  show(text, final) {
    if (!text.startsWith(this.text)) this.restart();
    this.text = text;
    this.final = final;
    schedule(this.work);
  }

  // Whether more is left to do in the next frame.
  update() {
    const text = this.source.take(this.text);
    if (this.at === 0) this.at = /^\s*/.exec(text)[0].length; // space before an answer is none of its own
    const more = this.isPlain ? this.showPlain(text) : this.step(text);
    for (const todo of this.root.querySelectorAll(".todo")) {
      todo.classList.remove("todo");
      if (todo.localName === "figure") colour(todo);
      else typeset(todo);
    }
    return more || this.reread();
  }

  // A link may be defined below its use.
  reread() {
    const count = Object.keys(this.links).length;
    if (!this.final || count === (this.known ?? 0)) return false;
    this.known = count;
    this.restart();
    return true;
  }

  showPlain(text) {
    this.put(plainBlocks(text.trimStart()).flatMap((token) => this.nodesOf(token, new Budget(MAX_ELEMENTS))), false);
    return false;
  }

  step(text) {
    const whole = text.length - this.at <= WINDOW;
    const part = whole ? text.slice(this.at) + this.ending : text.slice(this.at, text.lastIndexOf("\n", this.at + WINDOW) + 1 || undefined).slice(0, WINDOW);
    const tokens = this.budget.left > 0 ? lex(part, this.links) : null;
    if (!tokens) return this.keepPlain(text);
    const last = tokens.findLastIndex(isText);
    if (!whole && last <= 0) return this.keepLong(text, tokens, last);
    const ended = whole && this.final ? tokens.length : Math.max(last, 0);
    const rest = this.keep(part, tokens.slice(0, ended));
    if (whole) this.showTail(rest);
    return !whole;
  }

  // Shows tokens that will not change. → the text after them
  keep(part, tokens) {
    let at = 0;
    const nodes = [];
    for (const token of tokens) {
      // The lexer changes the space between two blocks in rare cases; then all that follows is read again.
      if (!part.startsWith(token.raw, at) || this.budget.left <= 0) break;
      at += token.raw.length;
      if (token.type === "definition") this.links[token.tag] ??= token.link;
      nodes.push(...this.nodesOf(token, this.budget));
    }
    this.at += at;
    if (nodes.length) this.put(nodes, true);
    return part.slice(at);
  }

  // marked knows code without an end only if its last line is complete.
  get ending() {
    return this.source.endsInCode ? "\n" : "";
  }

  showTail(rest) {
    const { ending } = this;
    const text = this.final ? rest : steady(rest.slice(0, rest.length - ending.length), ending !== "") + ending;
    const budget = new Budget(Math.max(this.budget.left, 0));
    const tokens = lex(text, this.links) ?? [{ type: "plain", text }];
    const nodes = [];
    let at = 0;
    for (const token of tokens) {
      if (budget.left <= 0) {
        nodes.push(...plainElements(text.slice(at)));
        break;
      }
      nodes.push(...this.nodesOf(token, budget));
      at += (token.raw ?? "").length;
    }
    this.put(nodes, false);
  }

  // One block is longer than the window.
  keepLong(text, tokens, last) {
    const rest = text.slice(this.at);
    const code = longCode(rest);
    if (code) {
      const ended = code.closed || this.final;
      this.put(this.nodesOf(code, this.budget), ended);
      return ended && this.goOn(text, code.raw.length);
    }
    const raw = last < 0 ? "" : tokens[last].raw;
    const isTextBlock = last < 0 || ["paragraph", "plain", "heading"].includes(tokens[last].type);
    if (!isTextBlock && rest.startsWith(raw)) {
      // A list or a table: its beginning looks as it should.
      this.put(this.nodesOf(tokens[last], this.budget), true);
      this.at += raw.length;
      return true;
    }
    const blank = /\n\s*\n/.exec(rest);
    const end = blank ? blank.index + blank[0].length : rest.length;
    this.put(plainElements(rest.slice(0, end)), blank !== null);
    return blank !== null && this.goOn(text, end);
  }

  // Whether there is more after a long block of so many characters.
  goOn(text, length) {
    this.at += length;
    if (this.at < text.length) return true;
    this.put([], false); // nothing follows
    return false;
  }

  // All the rest as it is.
  keepPlain(text) {
    this.put(plainElements(text.slice(this.at)), false);
    return false;
  }

  nodesOf(token, budget) {
    try {
      return blockNodes(token, budget);
    } catch (error) {
      if (!(error instanceof TooMuch)) throw error;
      return plainElements(token.raw ?? token.text);
    }
  }

  // Shows nodes after the ones that are kept. keep: they are kept too, and what follows them is still to come.
  put(nodes, keep) {
    morphChildren(this.root, this.kept, nodes, keep);
    if (keep) this.kept += nodes.length;
  }
}
