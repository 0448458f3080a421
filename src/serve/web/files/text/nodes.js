// Tokens of Markdown to elements. Every text becomes a text node.
import { element } from "../dom.js";
import { codeElement } from "./code.js";
import { decode, linkElement } from "./links.js";
import { formulaElement } from "./math.js";
import { pieces } from "./plain.js";
import { withTabs } from "./source.js";

export class TooMuch extends Error {}

const MAX_CELLS = 4_000;

// How many elements an answer may still make; TooMuch ends a block.
export class Budget {
  constructor(left) {
    this.left = left;
  }
  take(count = 1) {
    this.left -= count;
    if (this.left < 0) throw new TooMuch();
  }
}

function append(parent, nodes) {
  parent.append(...nodes);
  return parent;
}

// Blocks have the direction of their first letter, as in a book of two languages.
function block(tag, nodes, properties = {}) {
  return append(element(tag, { dir: "auto", ...properties }), nodes);
}

export const plainElements = (text) => pieces(withTabs(text)).map((piece) => element("p", { className: "plain", dir: "auto", textContent: piece }));

const codeSpan = (token) => token.raw.replace(/^(`+)([^]*)\1$/, "$2").replaceAll("\n", " ").replace(/^ (.*[^ ].*) $/, "$1");

const INLINE = {
  text: (token, budget) => (token.tokens ? inline(token.tokens, budget) : [decode(token.raw)]),
  escape: (token) => [token.raw.slice(1)],
  strong: (token, budget) => [append(element("strong"), inline(token.tokens, budget))],
  em: (token, budget) => [append(element("em"), inline(token.tokens, budget))],
  del: (token, budget) => [append(element("del"), inline(token.tokens, budget))],
  codespan: (token) => [element("code", { textContent: withTabs(codeSpan(token)) })],
  br: () => [element("br")],
  // Models use this one tag for lines inside of cells.
  html: (token) => [/^<br ?\/?>$/i.test(token.raw) ? element("br") : token.raw],
  link: (token, budget) => [linkElement(token.href, inline(token.tokens, budget))],
  image: (token) => [linkElement(token.href, [`image: ${decode(token.text) || "without a name"}`])],
  formula: (token, budget) => {
    budget.take(20); // a formula is that many elements
    return [formulaElement(token.tex, token.display)];
  },
};

function inline(tokens, budget) {
  return (tokens ?? []).flatMap((token) => {
    budget.take();
    return (INLINE[token.type] ?? ((t) => [t.raw]))(token, budget);
  });
}

function listItem(item, budget) {
  const nodes = item.tokens.flatMap((token) => (token.type === "text" ? inline([token], budget) : blockNodes(token, budget)));
  if (item.task) nodes.unshift(item.checked ? "☑ " : "☐ ");
  return block("li", nodes, item.task ? { className: "task" } : {});
}

function tableElement(token, budget) {
  if ((token.rows.length + 1) * token.header.length > MAX_CELLS) return plainElements(token.raw);
  const row = (cells, tag) => element("tr", {}, ...cells.map((cell, i) => {
    budget.take();
    const align = token.align[i];
    return block(tag, inline(cell.tokens, budget), { className: align === "right" || align === "center" ? align : "" });
  }));
  const table = element("table", {}, element("thead", {}, row(token.header, "th")),
    element("tbody", {}, ...token.rows.map((cells) => row(cells, "td"))));
  return [element("div", { className: "table", tabIndex: 0, role: "region", ariaLabel: "Table" }, table)];
}

const BLOCKS = {
  space: () => [],
  definition: () => [],
  // h1 is the page's, h2 the speaker's name.
  heading: (token, budget) => [block(`h${Math.min(token.depth + 2, 6)}`, inline(token.tokens, budget), { className: `depth${token.depth}` })],
  paragraph: (token, budget) => [block("p", inline(token.tokens, budget))],
  text: (token, budget) => [block("p", inline([token], budget))],
  hr: () => [element("hr")],
  blockquote: (token, budget) => [block("blockquote", token.tokens.flatMap((inner) => blockNodes(inner, budget)))],
  list: (token, budget) => {
    const list = element(token.ordered ? "ol" : "ul", { className: token.loose ? "loose" : "" });
    if (token.ordered && token.start !== 1) list.start = Math.min(token.start, 999_999_999);
    return [append(list, token.items.map((item) => {
      budget.take();
      return listItem(item, budget);
    }))];
  },
  table: tableElement,
  code: (token, budget) => {
    budget.take(8); // its frame
    return [codeElement(withTabs(token.text), token.lang ?? "", isClosed(token))];
  },
  formula: (token, budget) => INLINE.formula(token, budget).map((formula) => element("p", { className: "display" }, formula)),
  open_formula: (token) => [element("p", { className: "open-formula", textContent: token.text })],
  plain: (token) => plainElements(token.text),
};

// Indented code, which has no fence, is never "closed": it gets no colours, because its language is unknown.
function isClosed(token) {
  if (token.closed !== undefined) return token.closed;
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(token.raw);
  if (!fence) return false;
  const lines = token.raw.trimEnd().split("\n");
  return lines.length > 1 && lines.at(-1).trim().startsWith(fence[1]);
}

// Throws TooMuch.
export function blockNodes(token, budget) {
  budget.take();
  return (BLOCKS[token.type] ?? ((t) => plainElements(t.raw)))(token, budget);
}
