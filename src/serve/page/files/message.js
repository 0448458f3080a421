// One message of a conversation, and its elements.
import { showText } from "./text.js";

const NAMES = { user: "You", assistant: "Model" };

export function element(tag, properties = {}, ...children) {
  const out = Object.assign(document.createElement(tag), properties);
  out.append(...children);
  return out;
}

function button(text, onclick) {
  return element("button", { type: "button", textContent: text, onclick });
}

export class Message {
  // actions: [[name, function of the message], …]
  constructor(role, text, actions) {
    this.role = role;
    this.text = text;
    this.reasoning = "";
    this.drawn = false;
    this.reasoningText = element("div");
    this.reasoningBox = element("details", { className: "reasoning", hidden: true },
      element("summary", { textContent: "Reasoning" }), this.reasoningText);
    this.textBox = element("div", { className: "text" });
    this.error = element("p", { className: "error", hidden: true });
    this.error.setAttribute("role", "alert");
    this.note = element("span", { className: "note" });
    this.footer = element("footer", {}, this.note, ...actions.map(([name, act]) => button(name, () => act(this))));
    this.element = element("article", { className: `message ${role}` },
      element("h2", { textContent: NAMES[role] }), this.reasoningBox, this.textBox, this.error, this.footer);
    this.show();
  }

  show() {
    this.drawn = true;
    this.reasoningBox.hidden = !this.reasoning;
    showText(this.reasoningText, this.reasoning);
    showText(this.textBox, this.text);
  }

  // Shows what was added with the next frame.
  add(text, reasoning) {
    this.text += text;
    this.reasoning += reasoning;
    if (!this.drawn) return;
    this.drawn = false;
    requestAnimationFrame(() => this.drawn || this.show());
  }

  fail(message) {
    this.error.textContent = message;
    this.error.hidden = false;
  }

  // Replaces the text by an editor; save(text) is called for a changed or unchanged text, not after Cancel.
  edit(save) {
    if (this.editor) return;
    const input = element("textarea", { value: this.text, rows: Math.min(12, this.text.split("\n").length + 1) });
    input.setAttribute("aria-label", `Edit the message of ${NAMES[this.role]}`);
    const close = () => {
      this.editor.remove();
      this.editor = null;
      this.textBox.hidden = this.footer.hidden = false;
      this.footer.querySelector("button").focus();
    };
    const done = () => {
      close();
      save(input.value);
    };
    input.onkeydown = (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.shiftKey) done();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    this.editor = element("div", {}, input,
      element("div", { className: "row" }, button("Save", done), button("Cancel", close)));
    this.textBox.hidden = this.footer.hidden = true;
    this.textBox.after(this.editor);
    input.focus();
  }
}
