// Conversations as files: JSON, and Markdown that can be read back.
import { newData } from "../chat/message.js";

const MAX_BYTES = 50_000_000;
const FIELDS = ["text", "reasoning", "note", "error", "model"];

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const fileName = (title, suffix) => `${title.replace(/[^\p{L}\p{N}]+/gu, "_").slice(0, 50) || "conversation"}.${suffix}`;

const plainOf = ({ title, model, system, created, changed, messages }) => ({ title, model, system, created, changed, messages });

export function exportJson(bodies) {
  const text = JSON.stringify({ latte_conversations: 1, conversations: bodies.map(plainOf) }, null, 1);
  download(bodies.length === 1 ? fileName(bodies[0].title, "json") : "conversations.json", "application/json", text);
}

// A word that marks the parts of a file and is in none of the texts.
function markFor(body) {
  const all = JSON.stringify(body);
  for (let i = 1; ; ++i) if (!all.includes(`latte-${i}:`)) return `latte-${i}`;
}

export function toMarkdown(body) {
  const mark = markFor(body);
  const parts = [[`conversation ${JSON.stringify({ title: body.title, model: body.model, created: body.created, changed: body.changed })}`, `# ${body.title}`]];
  if (body.system) parts.push(["system", body.system]);
  for (const m of body.messages) {
    parts.push([m.role, m.text]);
    if (m.reasoning) parts.push(["reasoning", m.reasoning]);
    for (const file of m.files) parts.push([`file ${JSON.stringify(file.name)}`, file.text]);
    for (const call of m.calls) parts.push(["call", JSON.stringify(call)]);
    for (const name of ["note", "error", "model"]) if (m[name]) parts.push([name, m[name]]);
  }
  // Comments are not shown where Markdown is; the headings are for people.
  const heading = { user: "## You\n\n", assistant: "## Model\n\n" };
  return parts.map(([kind, text]) => `${heading[kind] ?? ""}<!-- ${mark}: ${kind.replaceAll("-->", "--\\u003e")} -->\n${text}\n`).join("\n");
}

export function exportMarkdown(body) {
  download(fileName(body.title, "md"), "text/markdown", toMarkdown(body));
}

function fromMarkdown(text) {
  const mark = /^<!-- (latte-\d+): conversation /.exec(text)?.[1];
  if (!mark) throw new Error("it is no conversation that this page has exported");
  const parts = text.split(new RegExp(`(?:^|\n\n)(?:## (?:You|Model)\n\n)?<!-- ${mark}: (.*) -->\n`)).slice(1);
  const body = { messages: [], system: "" };
  for (let i = 0; i < parts.length; i += 2) {
    const kind = parts[i];
    const content = i + 2 >= parts.length ? parts[i + 1].replace(/\n$/, "") : parts[i + 1];
    const last = body.messages.at(-1);
    const [word] = kind.split(" ", 1);
    const argument = kind.slice(word.length + 1);
    if (word === "conversation") Object.assign(body, JSON.parse(argument));
    else if (word === "system") body.system = content;
    else if (word === "user" || word === "assistant") body.messages.push({ ...newData(word, content) });
    else if (word === "file") last.files.push({ name: JSON.parse(argument), text: content });
    else if (word === "call") last.calls.push(JSON.parse(content));
    else if (FIELDS.includes(word)) last[word] = content;
  }
  return [body];
}

const textOr = (value, other) => (typeof value === "string" ? value : other);

// Only what the page itself writes, in the right types: files come from anywhere.
function checkedMessage(m) {
  const role = m?.role === "assistant" || m?.role === "user" ? m.role : null;
  const text = textOr(m?.text, textOr(m?.content, null));
  if (!role || text === null) throw new Error('a message needs "role", user or assistant, and "text"');
  const out = newData(role, text);
  for (const name of FIELDS) out[name] = textOr(m[name], out[name]);
  out.reasoning = textOr(m.reasoning, textOr(m.reasoning_content, ""));
  if (Array.isArray(m.files)) out.files = m.files.map((file) => ({ name: textOr(file?.name, "file"), text: textOr(file?.text, "") }));
  if (Array.isArray(m.calls)) out.calls = m.calls.map((call) => ({ id: textOr(call?.id, ""), name: textOr(call?.name, ""), arguments: textOr(call?.arguments, "") }));
  if (Number.isFinite(m.used)) out.used = m.used;
  return out;
}

function checked(body) {
  if (!Array.isArray(body?.messages)) throw new Error('expected "messages"');
  const isSystem = (m) => m?.role === "system";
  const system = textOr(body.system, textOr(body.messages.find(isSystem)?.content, ""));
  const messages = body.messages.filter((m) => !isSystem(m)).map(checkedMessage);
  const first = messages.find((m) => m.role === "user")?.text ?? "";
  const time = (value) => (Number.isFinite(value) && value > 0 ? value : Date.now());
  return { title: textOr(body.title, "").slice(0, 200) || first.slice(0, 60) || "Imported", model: textOr(body.model, ""), system,
    created: time(body.created), changed: time(body.changed), messages };
}

// The conversations of a file: one that this page has exported, or JSON with "messages" of the OpenAI API. Throws a text for the user.
export async function importFile(file) {
  try {
    if (file.size > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES / 1e6} MB`);
    const text = (await file.text()).replaceAll("\r\n", "\n");
    if (text.startsWith("<!--")) return fromMarkdown(text).map(checked);
    if (!/^\s*[[{]/.test(text)) throw new Error("it is no conversation that this page has exported");
    const json = JSON.parse(text);
    return (Array.isArray(json) ? json : json.conversations ?? [json]).map(checked);
  } catch (error) {
    throw new Error(`${file.name} is not imported: ${error.message}.`, { cause: error });
  }
}
