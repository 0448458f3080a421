// Links of answers: opened in another tab, never loaded, and never to another place than the reader sees.
import { element } from "../dom.js";

const SCHEMES = ["http:", "https:", "mailto:"];
const HOST = /(?:^|[\s/@])((?:[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+[\p{L}]{2,})/u;

const ENTITIES = {
  amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", ndash: "–", mdash: "—", hellip: "…", copy: "©", reg: "®", deg: "°",
  times: "×", divide: "÷", plusmn: "±", middot: "·", bull: "•", rarr: "→", larr: "←", uarr: "↑", darr: "↓", le: "≤", ge: "≥", ne: "≠",
  infin: "∞", euro: "€", laquo: "«", raquo: "»", check: "✓",
};

function character(number) {
  return number > 0 && number <= 0x10ffff && !(number >= 0xd800 && number <= 0xdfff) ? String.fromCodePoint(number) : "\ufffd";
}

export function decode(text) {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(\w{2,8}));/g, (all, decimal, hex, name) => {
    if (name) return Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : all;
    return character(decimal ? Number(decimal) : parseInt(hex, 16));
  });
}

// Null: this is no address that the page opens.
export function targetOf(href) {
  const text = decode(href).trim();
  if (/[\u0000-\u001f]/.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  return SCHEMES.includes(url.protocol) ? url : null;
}

const bare = (host) => host.toLowerCase().replace(/^www\./, "");

// Whether the text names a host that is not the target's.
function looksLikeAnother(text, url) {
  if (url.username || url.password) return true;
  const found = HOST.exec(text.replace(/[\u200b-\u200f\u2060-\u2069\u202a-\u202e\ufeff]/g, ""));
  return found !== null && (url.protocol === "mailto:" ? !url.pathname.endsWith(found[1]) : bare(found[1]) !== bare(url.hostname));
}

// children: what the link shows.
export function linkElement(href, children) {
  const url = targetOf(href);
  if (!url) return element("span", { className: "no-link", title: href.slice(0, 500) }, ...children);
  const out = element("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", title: url.href.slice(0, 500) }, ...children);
  if (looksLikeAnother(out.textContent, url)) out.append(element("span", { className: "real-host", textContent: ` (${url.host || url.pathname})` }));
  return out;
}
