// The fields of requests that the user sets, the system prompt, and the theme.

const THEME = "latte-theme";
const SETTINGS = "latte-settings";
const NUMBERS = ["temperature", "top_p", "max_tokens", "seed"];

const get = (id) => document.getElementById(id);

export const systemPrompt = () => get("system").value.trim();

// The fields that are set; null if one is wrong, which the browser then shows.
export function readSettings() {
  const form = get("settings");
  if (!form.checkValidity()) {
    form.closest("details").open = true;
    form.reportValidity();
    return null;
  }
  const set = NUMBERS.filter((id) => get(id).value !== "");
  return Object.fromEntries(set.map((id) => [id, get(id).valueAsNumber]));
}

// Keeps them as long as the tab.
export function keepSettings() {
  const form = get("settings");
  const ids = [...NUMBERS, "system"];
  const kept = JSON.parse(sessionStorage.getItem(SETTINGS) ?? "{}");
  for (const id of ids) get(id).value = kept[id] ?? "";
  form.oninput = () =>
    sessionStorage.setItem(SETTINGS, JSON.stringify(Object.fromEntries(ids.map((id) => [id, get(id).value]))));
  form.onsubmit = (event) => event.preventDefault();
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
