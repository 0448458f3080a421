// The list of kept conversations, and the one that is open.
import { closeDrawers } from "../drawers.js";
import { button, element, get } from "../dom.js";
import { Database, newId } from "./database.js";
import { exportJson, exportMarkdown, importFile } from "./exchange.js";

const OPEN = "latte-open"; // of this tab: what a reload opens
const KEEP_NOTHING = "latte-keep-nothing";
const SOON_MS = 2000;
const TITLE = 60; // characters

export class Chats {
  // hooks: system(), setSystem(text): the system prompt; model(): its name; toast(text, undo)
  constructor(conversation, hooks) {
    this.conversation = conversation;
    this.hooks = hooks;
    this.database = null; // none: the browser keeps nothing
    this.saving = Promise.resolve(); // writes come one after another
    this.timer = 0;
    this.dirty = false; // messages are not kept yet
    this.others = new BroadcastChannel("latte"); // other tabs of this browser
    this.others.onmessage = () => this.list();
    this.open = this.newHead();
    this.menu = null; // id of the conversation whose actions are shown
  }

  newHead() {
    const now = Date.now();
    return { id: newId(), version: 0, title: "", created: now };
  }

  get keepsNothing() {
    return !this.database || get("keep-nothing").checked;
  }

  // Whether closing the tab would lose messages.
  wouldLose() {
    return this.conversation.messages.length > 0 && (this.keepsNothing || this.dirty);
  }

  // Opens the database, and what this tab had open.
  async start() {
    try {
      this.database = await Database.open();
    } catch {
      get("keep-hint").textContent = "This browser keeps nothing here: conversations end with the tab.";
      get("keep-nothing").disabled = true;
    }
    get("keep-nothing").checked = !this.database || localStorage.getItem(KEEP_NOTHING) === "yes";
    get("keep-nothing").onchange = () => this.switchKeeping();
    get("import").onclick = () => get("import-file").click();
    get("import-file").onchange = () => this.importFiles();
    get("export-all").onclick = () => this.exportAll();
    const id = sessionStorage.getItem(OPEN);
    if (id && this.database) await this.openId(id);
    await this.list();
  }

  async switchKeeping() {
    const nothing = get("keep-nothing").checked;
    localStorage.setItem(KEEP_NOTHING, nothing ? "yes" : "");
    const heads = await this.database.heads();
    if (nothing && heads.length && confirm(`Delete the ${heads.length} conversations that this browser has kept, too?`)) {
      await this.database.clear();
      this.open = { ...this.newHead(), title: this.open.title };
      sessionStorage.removeItem(OPEN);
      this.changed();
    }
    if (!nothing) this.save();
  }

  // Tells this tab and the others.
  changed() {
    this.others.postMessage("changed");
    return this.list();
  }

  body() {
    const messages = this.conversation.messages.map((m) => structuredClone(m.data));
    const first = messages.find((m) => m.role === "user");
    this.open.title ||= (first?.text.trim() || first?.files[0]?.name || "").split("\n")[0].slice(0, TITLE);
    return { ...this.open, model: this.hooks.model(), system: this.hooks.system(), changed: Date.now(), messages };
  }

  // Keeps the open conversation as it is now.
  save() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.keepsNothing || this.conversation.messages.length === 0) return this.saving;
    const { open } = this;
    const body = this.body();
    this.dirty = true;
    this.saving = this.saving.then(async () => {
      try {
        const kept = await this.database.put({ ...body, id: open.id, version: open.version, title: open.title });
        if (kept.id !== open.id) this.hooks.toast("Another tab has changed this conversation. Yours is kept as a copy.");
        Object.assign(open, kept);
        if (open === this.open) {
          sessionStorage.setItem(OPEN, open.id);
          this.dirty = false;
        }
        await this.changed();
      } catch (error) {
        this.hooks.toast(`The conversation cannot be kept: ${error?.message ?? error}`);
      }
    });
    return this.saving;
  }

  // While an answer grows: what a crash can lose is small.
  saveSoon() {
    this.dirty = true;
    this.timer ||= setTimeout(() => this.save(), SOON_MS);
  }

  // The conversation that is open goes; its last words are kept first.
  leave() {
    const saved = this.conversation.busy ? this.save() : this.saving;
    clearTimeout(this.timer);
    this.timer = 0;
    return saved;
  }

  startNew() {
    const { messages } = this.conversation;
    if (this.keepsNothing && messages.length) {
      const [list, head] = [messages.map((m) => m.data), this.open];
      this.hooks.toast("The conversation is gone.", () => this.show(head, list));
    }
    this.leave();
    this.show(this.newHead(), []);
  }

  show(head, messages) {
    this.open = head;
    this.dirty = false;
    if (head.version) sessionStorage.setItem(OPEN, head.id);
    else sessionStorage.removeItem(OPEN);
    this.conversation.load(messages);
    closeDrawers();
    return this.list();
  }

  async openId(id) {
    await this.leave();
    const body = await this.database.body(id);
    if (!body) return;
    const { messages, system, ...head } = body;
    this.hooks.setSystem(system);
    await this.show(head, messages);
  }

  async remove(head) {
    await this.leave();
    this.menu = null;
    // An answer that still grows would keep itself again.
    if (head.id === this.open.id) this.show(this.newHead(), []);
    await this.saving;
    const body = await this.database.body(head.id);
    await this.database.remove(head.id);
    await this.changed();
    this.hooks.toast(`“${head.title}” is deleted.`, async () => {
      await this.database.put({ ...body, version: 0 });
      await this.changed();
    });
    (get("list").querySelector("button") ?? get("import")).focus();
  }

  async importFiles() {
    const input = get("import-file");
    const problems = [];
    let count = 0;
    for (const file of input.files) {
      try {
        for (const body of await importFile(file)) {
          if (this.keepsNothing) this.show({ ...this.newHead(), title: body.title }, body.messages);
          else await this.database.put({ ...body, id: newId(), version: 0 });
          ++count;
        }
      } catch (error) {
        problems.push(error.message);
      }
    }
    input.value = "";
    this.hooks.toast([...problems, `${count} imported.`].join(" "));
    if (!this.keepsNothing) await this.changed();
  }

  async exportAll() {
    await this.save();
    const heads = this.database ? await this.database.heads() : [];
    const bodies = this.keepsNothing && this.conversation.messages.length ? [this.body()] : [];
    for (const { id } of heads) bodies.push(await this.database.body(id));
    if (bodies.length) exportJson(bodies.filter(Boolean));
    else this.hooks.toast("There is nothing to export.");
  }

  // Shows the list.
  async list() {
    const heads = this.database ? await this.database.heads() : [];
    get("list-empty").hidden = heads.length > 0;
    if (get("list").querySelector("input")) return; // a title is being written; its end shows the list again
    const item = document.activeElement?.closest("#list li");
    const at = item ? [...item.querySelectorAll("button")].indexOf(document.activeElement) : -1;
    get("list").replaceChildren(...heads.map((head) => this.row(head)));
    if (item) get("list").querySelector(`[data-id="${item.dataset.id}"]`)?.querySelectorAll("button")[at]?.focus();
  }

  row(head) {
    const title = head.title || "Untitled";
    const open = button(title, () => this.openId(head.id));
    open.className = "open";
    open.title = `${title}\n${new Date(head.changed).toLocaleString()}`;
    if (head.id === this.open.id) open.setAttribute("aria-current", "true");
    const whole = async () => {
      if (head.id === this.open.id) await this.save();
      return this.database.body(head.id);
    };
    const actions = element("div", { className: "actions", hidden: head.id !== this.menu },
      button("Rename", () => this.rename(head, item)),
      button("Delete", () => this.remove(head)),
      button("Markdown", async () => exportMarkdown(await whole()), "Export as Markdown"),
      button("JSON", async () => exportJson([await whole()]), "Export as JSON"));
    const menu = button("⋯", () => {
      this.menu = this.menu === head.id ? null : head.id;
      this.list();
    }, `Rename, delete or export “${title}”`);
    menu.className = "menu";
    menu.ariaExpanded = `${head.id === this.menu}`;
    const item = element("li", {}, element("div", { className: "line" }, open, menu), actions);
    item.dataset.id = head.id;
    return item;
  }

  rename(head, item) {
    const input = element("input", { value: head.title, maxLength: 200, ariaLabel: "New title" });
    let ended = false;
    const end = async (keep) => {
      if (ended) return;
      ended = true;
      const title = input.value.trim();
      input.remove();
      this.menu = null;
      if (keep && title) {
        await this.database.rename(head.id, title);
        if (head.id === this.open.id) this.open.title = title;
        await this.changed();
      } else await this.list();
      get("list").querySelector(`[data-id="${head.id}"] .open`)?.focus();
    };
    input.onkeydown = (event) => {
      if (event.key === "Enter" || event.key === "Escape") {
        event.preventDefault();
        event.stopPropagation();
        end(event.key === "Enter");
      }
    };
    input.onblur = () => end(true);
    item.querySelector(".line").hidden = true;
    item.prepend(input);
    input.select();
  }
}
