// Elements, made without a line of HTML: nothing in a text can become markup.

const SVG = "http://www.w3.org/2000/svg";

export const get = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const out = Object.assign(document.createElement(tag), properties);
  out.append(...children);
  return out;
}

// label: for readers of screens, where the text alone does not say what the button does.
export function button(text, onclick, label = "") {
  const out = element("button", { type: "button", textContent: text, onclick });
  if (label) out.ariaLabel = label;
  return out;
}

export function svg(tag, attributes = {}, ...children) {
  const out = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) out.setAttribute(name, value);
  out.append(...children);
  return out;
}

// navigator.clipboard exists only on loopback and with TLS; the older way works everywhere.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const focused = document.activeElement;
    const area = element("textarea", { value: text, className: "off-screen" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    focused?.focus();
  }
}

// Lets a button say for a moment that it has worked.
export function flash(target, text) {
  if (target.dataset.text === undefined) target.dataset.text = target.textContent;
  target.textContent = text;
  clearTimeout(target.timer);
  target.timer = setTimeout(() => {
    target.textContent = target.dataset.text;
    delete target.dataset.text;
  }, 1500);
}
