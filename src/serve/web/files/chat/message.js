// One message of a conversation, and its elements.
import { button, copyText, element, flash } from "../dom.js";
import { Rendered } from "../text/markdown.js";
import { withFiles } from "./attach.js";

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // still incomplete
  }
}

// What a conversation keeps of a message; texts and lists only.
export function newData(role, text = "") {
  return { role, text, reasoning: "", calls: [], files: [], note: "", error: "", model: "" };
}

export class Message {
  // data: newData's; actions: [[name, function of the message], …]
  constructor(data, actions) {
    this.data = data;
    const { role } = data;
    const own = role === "user";
    this.reasoningText = element("div", { className: "text" });
    this.reasoningBox = element("details", { className: "reasoning", hidden: true },
      element("summary", { textContent: "Reasoning" }), this.reasoningText);
    this.files = element("div", { className: "message-files" });
    this.textBox = element("div", { className: own ? "text said" : "text said answer" });
    this.calls = element("div", { className: "calls" });
    this.error = element("p", { className: "error", role: "alert", hidden: true });
    this.note = element("span", { className: "note" });
    this.same = element("span", { className: "same" });
    const copy = button("Copy", () => this.copy(copy), own ? "Copy this message" : "Copy this answer");
    copy.className = "copy-all";
    this.footer = element("footer", {}, copy, ...actions.map(([name, act]) => button(name, () => act(this))), this.same, this.note);
    this.name = element("h2", { textContent: own ? "You" : data.model || "Model" });
    this.element = element("article", { className: `message ${role}` },
      this.name, this.reasoningBox, this.files, this.textBox, this.calls, this.error, this.footer);
    this.rendered = new Rendered(this.textBox, { plain: own });
    this.reasoning = new Rendered(this.reasoningText);
    this.show(true);
  }

  // final: nothing more will be added.
  show(final) {
    const { text, reasoning, files, calls, note, error } = this.data;
    this.reasoningBox.hidden = !reasoning;
    if (reasoning) this.reasoning.show(reasoning, final);
    this.rendered.show(text, final);
    this.note.textContent = note;
    this.error.textContent = error;
    this.error.hidden = !error;
    this.files.replaceChildren(...files.map((file) => element("details", {}, element("summary", { textContent: file.name }),
      element("pre", { tabIndex: 0, textContent: file.text }))));
    this.calls.replaceChildren(...calls.map((call) => element("div", { className: "call" },
      element("p", {}, "Calls ", element("strong", { textContent: call.name || "…" })),
      element("pre", { tabIndex: 0 }, element("code", { textContent: pretty(call.arguments) })))));
  }

  // delta: of a chunk of the OpenAI API. Shows it with the next frame.
  add({ content, reasoning_content: reasoning, tool_calls: calls }) {
    this.data.text += content ?? "";
    this.data.reasoning += reasoning ?? "";
    for (const { index = 0, function: part, id } of calls ?? []) {
      const call = (this.data.calls[index] ??= { id: "", name: "", arguments: "" });
      call.id = id ?? call.id;
      call.name += part?.name ?? "";
      call.arguments += part?.arguments ?? "";
    }
    if (calls) this.show(false);
    else if (content) this.rendered.show(this.data.text, false);
    if (reasoning) {
      this.reasoningBox.hidden = false;
      this.reasoning.show(this.data.reasoning, false);
    }
  }

  async copy(from) {
    await copyText(this.data.role === "user" ? withFiles(this.data) : this.data.text.trim());
    flash(from, "Copied");
  }

  // Replaces the text by an editor; save(text) is called for a changed or unchanged text, not after Cancel.
  edit(save) {
    if (this.editor) return;
    const { text } = this.data;
    const input = element("textarea", { value: text, rows: Math.min(12, text.split("\n").length + 1), ariaLabel: "Edit your message" });
    const close = () => {
      this.editor.remove();
      this.editor = null;
      this.textBox.hidden = this.footer.hidden = false;
    };
    const cancel = () => {
      close();
      this.footer.querySelector(".copy-all + button").focus();
    };
    const done = () => {
      close();
      save(input.value);
    };
    input.onkeydown = (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") cancel();
      else if (event.key === "Enter" && !event.shiftKey) done();
      else return;
      event.preventDefault();
      event.stopPropagation();
    };
    this.editor = element("div", { className: "editor" }, input,
      element("div", { className: "row" }, button("Save", done), button("Cancel", cancel)));
    this.textBox.hidden = this.footer.hidden = true;
    this.textBox.after(this.editor);
    input.focus();
  }
}
