// Text files that go along with a message.
import { button, element, get } from "../dom.js";

const MAX_BYTES = 262_144; // of one file
const MAX_FILES = 10;

// The text that is sent: the files between fences that occur in none of them, then the message.
export function withFiles({ text, files }) {
  const parts = files.map((file) => {
    const longest = Math.max(2, ...(file.text.match(/`{3,}/g) ?? []).map((mark) => mark.length));
    const fence = "`".repeat(longest + 1);
    return `${file.name}:\n${fence}\n${file.text.replace(/\n?$/, "\n")}${fence}\n`;
  });
  return [...parts, text].join("\n");
}

// Throws a text for the user.
async function readText(file) {
  if (file.size > MAX_BYTES) throw new Error(`${file.name} has ${Math.ceil(file.size / 1024)} KiB; at most ${MAX_BYTES / 1024} are taken.`);
  const bytes = await file.arrayBuffer();
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (text.includes("\0")) throw new Error();
    return text;
  } catch {
    throw new Error(`${file.name} is no text in UTF-8.`);
  }
}

export class Attachments {
  // say(text): tells the user; changed(): files came or went.
  constructor({ say, changed }) {
    this.files = [];
    this.hooks = { say, changed };
    const chooser = get("attach-file");
    get("attach").onclick = () => chooser.click();
    chooser.onchange = async () => {
      await this.add([...chooser.files]);
      chooser.value = "";
      get("input").focus();
    };
    document.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      document.body.classList.add("drop");
    });
    document.addEventListener("dragleave", (event) => event.relatedTarget || document.body.classList.remove("drop"));
    document.addEventListener("drop", (event) => {
      document.body.classList.remove("drop");
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
  }

  async add(files) {
    const problems = [];
    for (const file of files) {
      try {
        if (this.files.length >= MAX_FILES) throw new Error(`At most ${MAX_FILES} files go along with a message.`);
        this.files.push({ name: file.name, text: await readText(file) });
      } catch (error) {
        problems.push(error.message);
      }
    }
    if (problems.length) this.hooks.say([...new Set(problems)].join(" "));
    this.show();
  }

  // The files, which are then gone from here.
  take() {
    const { files } = this;
    this.files = [];
    this.show();
    return files;
  }

  show() {
    get("files").hidden = this.files.length === 0;
    get("files").replaceChildren(...this.files.map((file) => element("li", {}, `${file.name} `, button("×", () => {
      this.files = this.files.filter((other) => other !== file);
      this.show();
      get("input").focus();
    }, `Remove ${file.name}`))));
    this.hooks.changed();
  }
}
