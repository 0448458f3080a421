// The messages, and the answer that is being generated.
import { Message } from "./message.js";
import { ApiError, streamAnswer } from "./stream.js";

// Of an answer without a limit by a model without a chat format, which might never end.
export const CONTINUATION_TOKENS = 256;

function noteOf(answer) {
  const { usage, finish, seed, first, last, stopped } = answer;
  const notes = [];
  if (stopped) notes.push("stopped");
  if (finish === "length") notes.push("cut at the limit of tokens");
  if (usage) {
    const { prompt_tokens: prompt, completion_tokens: generated, prompt_tokens_details: details } = usage;
    notes.push(`${generated} tokens`);
    if (generated > 1 && last > first) notes.push(`${(((generated - 1) * 1000) / (last - first)).toFixed(1)} tokens/s`);
    notes.push(`prompt ${prompt} tokens, ${details?.cached_tokens ?? 0} from the cache`);
  }
  if (usage || last) notes.push(`seed ${seed}`);
  return notes.join(" · ");
}

export class Conversation {
  // settings(): fields of requests, or null if one is wrong; system(): the system prompt; changed(): an answer has begun
  // or ended.
  constructor(root, { settings, system, changed }) {
    this.root = root;
    this.hooks = { settings, system, changed };
    this.messages = [];
    this.isChat = true;
    this.running = null; // AbortController of the answer
  }

  get busy() {
    return this.running !== null;
  }

  stop() {
    this.running?.abort();
  }

  clear() {
    this.stop();
    this.messages = [];
    this.root.replaceChildren();
  }

  // Whether an answer begins.
  send(text) {
    const settings = this.busy ? null : this.hooks.settings();
    if (!settings) return false;
    this.append(new Message("user", text, [["Edit", (m) => this.edit(m)]]));
    this.answer(settings);
    return true;
  }

  append(message) {
    this.messages.push(message);
    this.root.append(message.element);
    message.element.scrollIntoView({ block: "end" });
  }

  cutFrom(message) {
    for (const gone of this.messages.splice(this.messages.indexOf(message))) gone.element.remove();
  }

  edit(message) {
    if (this.busy) return;
    message.edit((text) => {
      if (!text.trim() || !this.hooks.settings()) return;
      this.cutFrom(message);
      this.send(text);
    });
  }

  regenerate(message) {
    const settings = this.busy ? null : this.hooks.settings();
    if (!settings) return;
    this.cutFrom(message);
    this.answer(settings);
  }

  // An answer without text, that was stopped or has failed, is no message of the model.
  body() {
    const said = this.messages.filter((m) => m.role === "user" || m.text || m.reasoning);
    if (!this.isChat) return { prompt: said.map((m) => m.text).join(""), max_tokens: CONTINUATION_TOKENS };
    const messages = said.map((m) => ({
      role: m.role,
      content: m.text,
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
    const message = new Message("assistant", "", [["Regenerate", (m) => this.regenerate(m)]]);
    this.append(message);
    this.root.ariaBusy = "true";
    this.hooks.changed();
    try {
      const path = this.isChat ? "v1/chat/completions" : "v1/completions";
      for await (const chunk of streamAnswer(path, body, running.signal)) this.take(chunk, message, answer);
    } catch (error) {
      if (error.name === "AbortError") answer.stopped = true;
      else if (error instanceof ApiError) message.fail(error.message);
      else throw error;
    } finally {
      message.show();
      message.note.textContent = noteOf(answer);
      this.running = null;
      this.root.ariaBusy = "false";
      this.hooks.changed();
    }
  }

  take(chunk, message, answer) {
    if (chunk.usage) answer.usage = chunk.usage;
    for (const choice of chunk.choices) {
      const text = choice.text ?? choice.delta?.content ?? "";
      const reasoning = choice.delta?.reasoning_content ?? "";
      answer.finish = choice.finish_reason ?? answer.finish;
      if (!text && !reasoning) continue;
      answer.last = performance.now();
      answer.first ??= answer.last;
      const { scrollTop, clientHeight, scrollHeight } = this.root;
      const atEnd = scrollTop + clientHeight > scrollHeight - 60;
      message.add(text, reasoning);
      if (atEnd) requestAnimationFrame(() => this.root.scrollTo({ top: this.root.scrollHeight }));
    }
  }
}
