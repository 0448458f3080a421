// Blocks of code: the language's name, a button that copies, and colours by Prism's tokens once the block has ended.
import { element } from "../dom.js";
import { libraries } from "../libraries/libraries.js";
import { pieces } from "./plain.js";

const MAX_CODE = 20_000; // characters; Prism's expressions may take long on more, or on long lines
const MAX_LINE = 1_000;
const NAMES = { js: "javascript", ts: "typescript", py: "python", python3: "python", sh: "bash", shell: "bash", console: "bash", zsh: "bash",
  "c++": "cpp", cc: "cpp", h: "c", hpp: "cpp", cs: "csharp", "c#": "csharp", golang: "go", rs: "rust", yml: "yaml", md: "markdown",
  html: "markup", xml: "markup", svg: "markup", dockerfile: "docker", make: "makefile", rb: "ruby", kt: "kotlin", tex: "latex", ps1: "powershell",
  patch: "diff", conf: "ini", jsonc: "json", hs: "haskell", pl: "perl" };

let prism = null;
let loading = null;

// Resolves once Prism is there, or has failed to come.
function load() {
  loading ??= import("../libraries/prism.js").then((module) => (prism = module.default), () => {});
  return loading;
}

const isLong = (text) => text.length > MAX_CODE;

// closed: nothing more will be added.
export function codeElement(text, info, closed) {
  const label = info.trim().split(/\s/)[0].slice(0, 30);
  const code = element("code");
  if (isLong(text)) code.append(...pieces(text).map((piece) => element("span", { className: "piece", textContent: piece })));
  else code.textContent = text;
  const copy = element("button", { type: "button", className: "copy", textContent: "Copy", ariaLabel: "Copy this code" });
  const out = element("figure", { className: "code todo" }, element("figcaption", {}, element("span", { textContent: label || "text" }), copy),
    element("pre", { tabIndex: 0, dir: "ltr" }, code));
  out.key = `${closed} ${label}\n${text}`;
  out.info = { closed, label, text };
  return out;
}

function appendTokens(parent, tokens) {
  for (const token of [tokens].flat()) {
    if (typeof token === "string") parent.append(token);
    else {
      const span = element("span", { className: [token.type, token.alias].flat().filter(Boolean).map((name) => `t-${name}`).join(" ") });
      appendTokens(span, token.content);
      parent.append(span);
    }
  }
}

const isSmall = (text) => !isLong(text) && !text.split("\n").some((line) => line.length > MAX_LINE);

// Colours a block that is in the document.
export function colour(figure) {
  const { closed, label, text } = figure.info;
  if (!closed || !libraries.prism || !label || !isSmall(text)) return;
  if (!prism) {
    load().then(() => prism && figure.info.closed && figure.info.text === text && colour(figure));
    return;
  }
  const name = label.toLowerCase();
  const language = NAMES[name] ?? name;
  if (!Object.hasOwn(prism.languages, language) || typeof prism.languages[language] === "function") return;
  try {
    const code = element("code");
    appendTokens(code, prism.tokenize(text, prism.languages[language]));
    figure.querySelector("code").replaceWith(code);
  } catch {
    // The text stays as it is.
  }
}
