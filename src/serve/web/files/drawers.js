// Columns that are drawers where the window is narrow, and short messages.
import { button, get } from "./dom.js";

const TOAST_MS = 8000;

// Below these widths (style.css has the same) the conversations, then also the settings, are behind a button.
const DRAWERS = { chats: "(max-width: 74.99rem)", side: "(max-width: 51.99rem)" };

export function keepDrawers() {
  for (const [id, query] of Object.entries(DRAWERS)) {
    const media = matchMedia(query);
    const apply = () => {
      get(id).popover = media.matches ? "auto" : null;
    };
    media.addEventListener("change", apply);
    apply();
  }
}

export function closeDrawers() {
  for (const id of Object.keys(DRAWERS)) if (get(id).popover && get(id).matches(":popover-open")) get(id).hidePopover();
}

let timer = 0;

// Says something for a while; undo: a function for a button.
export function toast(text, undo = null) {
  const box = get("toast");
  const hide = () => {
    box.hidden = true;
    clearTimeout(timer);
  };
  box.replaceChildren(text);
  if (undo) box.append(button("Undo", () => {
    hide();
    undo();
  }));
  box.append(button("×", hide, "Close this message"));
  box.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(hide, TOAST_MS);
}
