// What the server does now, from GET /metrics.
import { request } from "./stream.js";

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

function bytesText(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  for (; bytes >= 1000 && i + 1 < units.length; ++i) bytes /= 1000;
  return `${i === 0 ? bytes : bytes.toPrecision(3)} ${units[i]}`;
}

const whole = (number) => number.toLocaleString("en");

// Tokens per second between two looks; both: {time, metrics}.
function rateText(before, now) {
  const generated = "vllm:generation_tokens_total";
  if (!before) return "–";
  const tokens = now.metrics[generated] - before.metrics[generated];
  return tokens < 0 ? "–" : ((tokens * 1000) / (now.time - before.time)).toFixed(1);
}

// engine: of GET /props.
function texts(before, now, engine) {
  const m = now.metrics;
  const pages = m["latte:cache_pages_used"] + m["latte:cache_pages_cached"];
  const bytes = pages * m["latte:cache_page_bytes"];
  const mha = pages * engine.page_tokens * engine.mha_bytes_per_token;
  const asked = m["vllm:prefix_cache_queries_total"];
  const found = m["vllm:prefix_cache_hits_total"];
  return {
    running: whole(m["vllm:num_requests_running"]),
    waiting: whole(m["vllm:num_requests_waiting"]),
    rate: rateText(before, now),
    pages: `${whole(m["latte:cache_pages_used"])} of ${whole(m["latte:cache_pages"])}`,
    kept: whole(m["latte:cache_pages_cached"]),
    hits: asked > 0 ? `${whole(found)} of ${whole(asked)} tokens` : "–",
    mla: bytesText(bytes),
    mha: bytes > 0 ? `${bytesText(mha)} (${(mha / bytes).toFixed(1)}×)` : bytesText(mha),
  };
}

// engine(): of GET /props, null before it is known. failed(error): the server did not answer.
export function watchServer(panel, { engine, failed }) {
  let before = null;
  const look = async () => {
    if (document.hidden || !panel.open || !engine()) return;
    try {
      const metrics = parseMetrics(await (await request("metrics")).text());
      const now = { time: performance.now(), metrics };
      for (const [id, text] of Object.entries(texts(before, now, engine())))
        document.getElementById(id).textContent = text;
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
}
