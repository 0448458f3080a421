// What the server does now, from GET /metrics: figures, charts of the last minutes, and the memory.
import { element, get } from "../dom.js";
import { request } from "../chat/stream.js";
import { Chart } from "./chart.js";
import { MemoryBar, bytesText } from "./memory.js";

const POLL_MS = 2000;
const FIRST_MS = 100; // until the model is known

// Sums of all samples of each name, over all labels.
function parseMetrics(text) {
  const sums = {};
  for (const line of text.split("\n")) {
    const [, name, value] = /^([a-zA-Z_:]+)(?:\{.*\})? (\S+)$/.exec(line) ?? [];
    if (name) sums[name] = (sums[name] ?? 0) + Number(value);
  }
  return sums;
}

const whole = (number) => number.toLocaleString("en");

// Tokens per second between two looks; both: {time, metrics}. Null: unknown.
function rateOf(before, now) {
  const generated = "vllm:generation_tokens_total";
  if (!before) return null;
  const tokens = now.metrics[generated] - before.metrics[generated];
  return tokens < 0 ? null : (tokens * 1000) / (now.time - before.time);
}

// In plain words what MLA saves. bytes: of the pages in use; mha: of the same tokens as keys and values of every head.
function savingText(bytes, mha) {
  if (!(bytes > 0)) return "Models with ordinary attention keep keys and values of every head; this one keeps one short vector for all heads.";
  return `The conversations in the cache take ${bytesText(bytes)}. With ordinary attention (MHA), which keeps keys and values of every head, ` +
    `they would take ${bytesText(mha)}, ${(mha / bytes).toFixed(1)}× as much.`;
}

const ROWS = { waiting: "Waiting requests", kept: "Cache pages kept for prefixes", hits: "Prompt tokens found in the cache" };

class Panel {
  constructor(root) {
    this.root = root;
    this.charts = {
      rate: new Chart("Tokens per second", (value) => value.toFixed(1)),
      running: new Chart("Running requests", whole),
      pages: new Chart("Cache pages in use", whole),
    };
    this.memory = new MemoryBar();
    this.saving = element("p", { id: "saving", className: "saving" });
    this.rows = Object.fromEntries(Object.keys(ROWS).map((id) => [id, element("dd", { id, textContent: "–" })]));
    root.append(element("summary", { textContent: "Server" }), element("p", { id: "stale", hidden: true, textContent: "No answer: these figures are old." }),
      ...Object.values(this.charts).map((chart) => chart.element),
      element("dl", {}, ...Object.entries(ROWS).flatMap(([id, name]) => [element("dt", { textContent: name }), this.rows[id]])),
      this.memory.element, this.saving);
  }

  // before, now: {time, metrics}; engine: of GET /props.
  show(before, now, engine) {
    const m = now.metrics;
    const used = m["latte:cache_pages_used"];
    const bytes = (used + m["latte:cache_pages_cached"]) * m["latte:cache_page_bytes"];
    const asked = m["vllm:prefix_cache_queries_total"];
    this.charts.rate.add(rateOf(before, now));
    this.charts.running.add(m["vllm:num_requests_running"], engine.max_sequences);
    this.charts.pages.add(used, m["latte:cache_pages"]);
    this.rows.waiting.textContent = whole(m["vllm:num_requests_waiting"]);
    this.rows.kept.textContent = whole(m["latte:cache_pages_cached"]);
    this.rows.hits.textContent = asked > 0 ? `${whole(m["vllm:prefix_cache_hits_total"])} of ${whole(asked)}` : "–";
    const mha = (bytes / m["latte:cache_page_bytes"]) * engine.page_tokens * engine.mha_bytes_per_token;
    this.memory.show(engine, bytes, m["latte:cache_pages"] * m["latte:cache_page_bytes"], bytes > 0 ? mha : 0);
    this.saving.textContent = savingText(bytes, mha);
    this.stale(false);
  }

  // Figures of a server that is gone are grey.
  stale(is) {
    this.root.classList.toggle("stale", is);
    get("stale").hidden = !is;
  }
}

// engine(): of GET /props, null before it is known or while the server is gone. failed(error): the server did not answer.
export function watchServer(root, { engine, failed }) {
  const panel = new Panel(root);
  let before = null;
  const look = async () => {
    if (document.hidden || !root.open || !engine()) return;
    try {
      const metrics = parseMetrics(await (await request("metrics")).text());
      const now = { time: performance.now(), metrics };
      if (engine()) panel.show(before, now, engine());
      before = now;
    } catch (error) {
      before = null;
      failed(error);
    }
  };
  const loop = async () => {
    await look();
    setTimeout(loop, engine() ? POLL_MS : FIRST_MS);
  };
  loop();
  return panel;
}
