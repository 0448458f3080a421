// Formulas: KaTeX's tree of MathML becomes elements here, because KaTeX itself would set style attributes, which the page's policy
// forbids. Elements and attributes that are not listed are left out.
import { element } from "../dom.js";
import { libraries } from "../libraries/libraries.js";
import { MAX_FORMULA } from "./math_tokens.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const ELEMENTS = new Set(["math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msub", "msup", "msubsup", "munder",
  "mover", "munderover", "mmultiscripts", "mprescripts", "mtable", "mtr", "mlabeledtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose"]);
const ATTRIBUTES = new Set(["mathvariant", "mathcolor", "mathbackground", "displaystyle", "scriptlevel", "width", "height", "depth", "lspace", "rspace",
  "voffset", "stretchy", "fence", "separator", "form", "symmetric", "largeop", "movablelimits", "minsize", "maxsize", "accent", "accentunder",
  "linethickness", "columnalign", "rowspacing", "columnspacing", "columnlines", "rowlines", "frame", "notation", "display", "side"]);
const OPTIONS = { output: "mathml", trust: false, strict: false, throwOnError: true, maxExpand: 100, maxSize: 20 };
const MAX_NODES = 3_000; // of one formula
const MAX_KEPT = 500;

let katex = null;
let loading = null;
const kept = new Map(); // formula → its element, or null if KaTeX refuses it

function load() {
  loading ??= import("../libraries/katex.js").then(() => (katex = globalThis.katex), () => {});
  return loading;
}

export function formulaElement(tex, display) {
  const out = element("span", { className: display ? "formula todo block" : "formula todo", textContent: tex });
  out.key = `${display} ${tex}`;
  out.info = { tex, display };
  return out;
}

function spaceElement({ width, character }) {
  const out = document.createElementNS(MATHML, character ? "mtext" : "mspace");
  if (character) out.textContent = character;
  else out.setAttribute("width", `${width}em`);
  return out;
}

// node: of KaTeX's tree. → nodes of the document
function convert(node, count) {
  if (++count.nodes > MAX_NODES) throw new Error("too large");
  if (node.width !== undefined && !node.type) return [spaceElement(node)];
  if (node.text !== undefined && !node.type) return [node.toText ? node.toText() : node.text];
  const children = (node.children ?? []).filter((child) => child.type !== "annotation").flatMap((child) => convert(child, count));
  if (!ELEMENTS.has(node.type)) return children; // semantics, and the span around it
  const out = document.createElementNS(MATHML, node.type);
  for (const [name, value] of Object.entries(node.attributes ?? {})) if (ATTRIBUTES.has(name)) out.setAttribute(name, value);
  out.append(...children);
  return [out];
}

function make(tex, display) {
  if (tex.length > MAX_FORMULA) return null;
  try {
    const [math] = convert(katex.__renderToDomTree(tex, { ...OPTIONS, displayMode: display }), { nodes: 0 });
    return math instanceof Element ? math : null;
  } catch {
    return null; // no formula, or one that would grow without end: its source stays
  }
}

// Replaces the source of a formula that is in the document.
export function typeset(target) {
  if (!libraries.katex) return;
  if (!katex) {
    load().then(() => katex && typeset(target));
    return;
  }
  const { tex, display } = target.info;
  if (!kept.has(target.key)) {
    if (kept.size >= MAX_KEPT) kept.delete(kept.keys().next().value);
    kept.set(target.key, make(tex, display));
  }
  const math = kept.get(target.key);
  if (math) target.replaceChildren(math.cloneNode(true));
  else target.classList.add("refused");
}
