// The messages, and the answer that is being generated.
import { copyText, flash } from "../dom.js";
import { withFiles } from "./attach.js";
import { Message, newData } from "./message.js";
import { ApiError, streamAnswer } from "./stream.js";

// Of an answer without a limit by a model without a chat format, which might never end.
export const CONTINUATION_TOKENS = 256;

const ENDS = { length: "cut at the limit of tokens", tool_calls: "waits for the result of its call", stop: "" };

function noteOf(answer) {
  const { usage, finish, seed, first, last, stopped } = answer;
  const notes = [];
  if (stopped) notes.push("stopped");
  if (finish) notes.push(ENDS[finish] ?? `ended: ${finish}`);
  if (usage) {
    const { prompt_tokens: prompt, completion_tokens: generated, prompt_tokens_details: details } = usage;
    notes.push(`${generated} tokens`);
    if (generated > 1 && last > first) notes.push(`${(((generated - 1) * 1000) / (last - first)).toFixed(1)} tokens/s`);
    notes.push(`prompt ${prompt} tokens, ${details?.cached_tokens ?? 0} from the cache`);
  }
  if (usage || last) notes.push(`seed ${seed}`);
  return notes.filter(Boolean).join(" · ");
}

export class Conversation {
  // hooks: settings(): fields of requests, or null if one is wrong; system(): the system prompt; model(): its name;
  // focus(): to where the next message is written; changed(): an answer has begun or ended; edited(): messages came, went or grew; same(): why an answer would come again, or "".
  constructor(root, follow, hooks) {
    this.root = root;
    this.follow = follow;
    this.hooks = hooks;
    this.messages = [];
    this.isChat = true;
    this.running = null; // AbortController of the answer
    // Blocks of code come and go while an answer streams: their buttons have no listeners of their own.
    root.addEventListener("click", async ({ target }) => {
      if (!target.matches("figcaption .copy")) return;
      await copyText(target.closest("figure").querySelector("code").textContent);
      flash(target, "Copied");
    });
  }

  get busy() {
    return this.running !== null;
  }

  stop() {
    this.running?.abort();
  }

  // Shows these messages (newData's) instead.
  load(list) {
    this.stop();
    this.running = null; // what the old answer still does is not about these messages
    this.root.ariaBusy = "false";
    this.messages = [];
    this.root.replaceChildren();
    for (const data of list) this.append(data);
    this.follow.end();
    this.showSame();
    this.hooks.changed();
  }

  // Tokens of the context that the last answer has left in use; 0: unknown.
  get used() {
    return this.messages.findLast((m) => m.data.used)?.data.used ?? 0;
  }

  // Whether an answer begins.
  send(text, files = []) {
    const settings = this.busy ? null : this.hooks.settings();
    if (!settings) return false;
    this.append({ ...newData("user", text), files });
    this.answer(settings);
    return true;
  }

  append(data) {
    const actions = data.role === "user" ? [["Edit", (m) => this.edit(m)]] : [["Regenerate", (m) => this.regenerate(m)]];
    const message = new Message(data, actions);
    this.messages.push(message);
    this.root.append(message.element);
    return message;
  }

  cutFrom(message) {
    for (const gone of this.messages.splice(this.messages.indexOf(message))) gone.element.remove();
  }

  edit(message) {
    if (this.busy) return;
    message.edit((text) => {
      if (!(text.trim() || message.data.files.length) || !this.hooks.settings()) return;
      this.cutFrom(message);
      this.send(text, message.data.files);
      this.hooks.focus();
    });
  }

  regenerate(message) {
    const settings = this.busy ? null : this.hooks.settings();
    if (!settings) return;
    this.cutFrom(message);
    this.answer(settings);
    this.hooks.focus(); // the button that had it is gone
  }

  showSame() {
    const why = this.hooks.same();
    this.messages.forEach((m, i) => (m.same.textContent = i === this.messages.length - 1 && m.data.role === "assistant" ? why : ""));
  }

  // An answer without text, that was stopped or has failed, is no message of the model.
  body() {
    const said = this.messages.map((m) => m.data).filter((m) => m.role === "user" || m.text || m.reasoning);
    if (!this.isChat) return { prompt: said.map(withFiles).join(""), max_tokens: CONTINUATION_TOKENS };
    const messages = said.map((m) => ({
      role: m.role,
      content: withFiles(m),
      ...(m.reasoning ? { reasoning_content: m.reasoning } : {}),
    }));
    const system = this.hooks.system();
    if (system) messages.unshift({ role: "system", content: system });
    return { messages };
  }

  async answer(settings) {
    const running = new AbortController();
    this.running = running;
    // The same seed would give the same answer again.
    const answer = { seed: settings.seed ?? Math.floor(Math.random() * 2 ** 31), stopped: false };
    const body = { ...this.body(), ...settings, seed: answer.seed };
    const message = this.append({ ...newData("assistant"), model: this.hooks.model() });
    this.follow.end();
    this.showSame();
    this.root.ariaBusy = "true";
    this.hooks.changed();
    this.hooks.edited();
    try {
      const path = this.isChat ? "v1/chat/completions" : "v1/completions";
      for await (const chunk of streamAnswer(path, body, running.signal)) this.take(chunk, message, answer);
    } catch (error) {
      if (error.name === "AbortError") answer.stopped = true;
      else if (error instanceof ApiError) message.data.error = error.message;
      else throw error;
    } finally {
      message.data.note = noteOf(answer);
      if (answer.usage) message.data.used = answer.usage.prompt_tokens + answer.usage.completion_tokens;
      message.show(true);
      if (this.running === running) this.ended();
    }
  }

  ended() {
    this.running = null;
    this.root.ariaBusy = "false";
    this.hooks.changed();
    this.hooks.edited();
  }

  take(chunk, message, answer) {
    if (chunk.usage) answer.usage = chunk.usage;
    for (const choice of chunk.choices) {
      const delta = choice.text === undefined ? choice.delta ?? {} : { content: choice.text };
      answer.finish = choice.finish_reason ?? answer.finish;
      if (!delta.content && !delta.reasoning_content && !delta.tool_calls) continue;
      answer.last = performance.now();
      answer.first ??= answer.last;
      message.add(delta);
      this.hooks.grown?.();
    }
  }
}
