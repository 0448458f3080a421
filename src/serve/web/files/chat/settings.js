// The fields of requests that the user sets, the system prompt, and the theme.
import { element, get } from "../dom.js";

const THEME = "latte-theme";
const SETTINGS = "latte-settings";
const MODELS = "model’s";

// name of the field: its label, range, and what holds if it is empty and the server names no default
const COMMON = {
  temperature: { label: "Temperature", min: 0, max: 100, step: "any", empty: MODELS },
  top_p: { label: "Top p", min: 0, max: 1, step: "any", empty: MODELS },
  max_tokens: { label: "Max tokens", min: 1, step: 1, empty: "all that fit" },
  seed: { label: "Seed", min: 0, max: Number.MAX_SAFE_INTEGER, step: 1, empty: "a new one" },
};
const MORE = {
  top_k: { label: "Top k", min: 0, step: 1, empty: MODELS },
  min_p: { label: "Min p", min: 0, max: 1, step: "any", empty: MODELS },
  repetition_penalty: { label: "Repetition penalty", min: 0, max: 100, step: "any", empty: MODELS },
  presence_penalty: { label: "Presence penalty", min: -2, max: 2, step: "any", empty: "0" },
  frequency_penalty: { label: "Frequency penalty", min: -2, max: 2, step: "any", empty: "0" },
  min_tokens: { label: "Min tokens", min: 0, step: 1, empty: "0" },
};
const NUMBERS = { ...COMMON, ...MORE };
const TEXTS = ["system", "thinking", "stop-texts", "stop-ids", "logit-bias"];

export const systemPrompt = () => get("system").value.trim();

// {id: bias} of lines "ID: BIAS". Throws a text for the user.
function biasOf(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  return Object.fromEntries(lines.map((line) => {
    const found = /^\s*(\d+)\s*:\s*(-?\d+(?:\.\d+)?)\s*$/.exec(line);
    if (!found || Math.abs(found[2]) > 100) throw new Error(`Expected "ID: BIAS" with a bias from -100 to 100, found "${line}".`);
    return [found[1], Number(found[2])];
  }));
}

function checkBias() {
  const area = get("logit-bias");
  try {
    biasOf(area.value);
    area.setCustomValidity("");
  } catch (error) {
    area.setCustomValidity(error.message);
  }
}

function otherFields() {
  const fields = {};
  const stops = get("stop-texts").value.split("\n").filter(Boolean).map((line) => line.replaceAll("\\n", "\n"));
  if (stops.length) fields.stop = stops;
  if (get("stop-ids").value.trim()) fields.stop_token_ids = get("stop-ids").value.split(",").map(Number);
  if (get("logit-bias").value.trim()) fields.logit_bias = biasOf(get("logit-bias").value);
  if (get("ignore-eos").checked) fields.ignore_eos = true;
  const thinking = get("thinking-row").hidden ? "" : get("thinking").value;
  if (thinking) fields.enable_thinking = thinking === "on";
  return fields;
}

function showForm(form) {
  for (let at = form.querySelector(":invalid"); at; at = at.parentElement) {
    if (at.localName === "details") at.open = true;
    if (at.popover && !at.matches(":popover-open")) at.showPopover();
  }
  form.reportValidity();
}

// The fields that are set; null if one is wrong, which the browser then shows.
export function readSettings() {
  const form = get("settings");
  if (!form.checkValidity()) {
    showForm(form);
    return null;
  }
  const set = Object.keys(NUMBERS).filter((id) => get(id).value !== "");
  return { ...Object.fromEntries(set.map((id) => [id, get(id).valueAsNumber])), ...otherFields() };
}

// Why the same answer would come again, or "".
export function whySame(defaults) {
  const temperature = get("temperature").value === "" ? defaults?.temperature : get("temperature").valueAsNumber;
  if (temperature === 0) return "temperature 0: the same answer comes again";
  return get("seed").value === "" ? "" : "fixed seed: the same answer comes again";
}

// Shows what holds where nothing is set. props: of GET /props.
export function showDefaults(props, maxTokens) {
  for (const [id, { empty }] of Object.entries(NUMBERS)) {
    const value = props.defaults?.[id];
    get(id).placeholder = typeof value === "number" ? `${Number(value.toPrecision(6))}` : empty; // a float32 has more digits than its name
  }
  if (maxTokens) get("max_tokens").placeholder = maxTokens;
  get("thinking-row").hidden = !props.has_thinking_switch;
  get("system-row").hidden = props.chat_format === null;
}

function addNumbers(parent, fields) {
  for (const [id, { label, empty, ...range }] of Object.entries(fields))
    parent.append(element("label", {}, `${label} `, element("input", { id, type: "number", placeholder: empty, ...range })));
}

// Keeps them as long as the tab. changed(): one has another value.
export function keepSettings(changed) {
  const form = get("settings");
  addNumbers(get("numbers"), COMMON);
  addNumbers(get("more-numbers"), MORE);
  const ids = [...Object.keys(NUMBERS), ...TEXTS];
  const kept = JSON.parse(sessionStorage.getItem(SETTINGS) ?? "{}");
  for (const id of ids) get(id).value = kept[id] ?? "";
  get("ignore-eos").checked = kept["ignore-eos"] === "on";
  checkBias();
  form.oninput = () => {
    checkBias();
    const values = Object.fromEntries(ids.map((id) => [id, get(id).value]));
    sessionStorage.setItem(SETTINGS, JSON.stringify({ ...values, "ignore-eos": get("ignore-eos").checked ? "on" : "" }));
    changed();
  };
  form.onsubmit = (event) => event.preventDefault();
}

export function setSystemPrompt(text) {
  get("system").value = text;
  get("settings").oninput();
}

// "": as the system.
export function keepTheme() {
  const select = get("theme");
  const apply = () => (document.documentElement.dataset.theme = select.value);
  select.value = localStorage.getItem(THEME) ?? "";
  select.onchange = () => {
    localStorage.setItem(THEME, select.value);
    apply();
  };
  apply();
}
