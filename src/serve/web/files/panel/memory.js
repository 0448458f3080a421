// The server's memory as one bar, and as another what its cache would be without MLA.
import { element, svg } from "../dom.js";

const WIDTH = 300;

export function bytesText(bytes) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let i = 0;
  for (; bytes >= 1000 && i + 1 < units.length; ++i) bytes /= 1000;
  return `${i === 0 ? bytes : bytes.toPrecision(3)} ${units[i]}`;
}

function bar(parts, all) {
  let x = 0;
  return parts.map(([kind, , bytes]) => {
    const width = (bytes / all) * WIDTH;
    const out = svg("rect", { x: x.toFixed(2), y: 0, width: width.toFixed(2), height: 12, class: `memory-${kind}` });
    x += width;
    return out;
  });
}

export class MemoryBar {
  constructor() {
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} 12`, preserveAspectRatio: "none", role: "img", class: "memory-bar" });
    this.other = svg("svg", { viewBox: `0 0 ${WIDTH} 12`, preserveAspectRatio: "none", role: "img", class: "memory-bar" });
    this.legend = element("ul", { className: "legend" });
    this.element = element("div", { id: "memory", hidden: true }, element("div", { className: "chart-head" }, element("span", { textContent: "Memory" })),
      this.picture, this.legend, this.other);
  }

  // engine: of GET /props, where the bytes of weights and workspace may be absent; used, cache: bytes; mha: bytes that ordinary attention would take
  // for what `used` holds, 0 for none.
  show(engine, used, cache, mha) {
    const { weight_bytes: weights = 0, workspace_bytes: workspace = 0 } = engine;
    const parts = [["weights", "weights", weights], ["workspace", "workspace", workspace], ["used", "cache in use", used], ["free", "cache free", cache - used]]
      .filter(([, , bytes]) => bytes > 0);
    const fixed = weights + workspace;
    const all = Math.max(fixed + cache, fixed + mha);
    const without = [["weights", "", weights], ["workspace", "", workspace], ["mha", "", mha]].filter(([, , bytes]) => bytes > 0);
    this.picture.replaceChildren(...bar(parts, all));
    this.other.replaceChildren(...bar(without, all));
    const rows = mha > 0 ? [...parts, ["mha", "the same with ordinary attention (second bar)", mha]] : parts;
    this.other.toggleAttribute("hidden", !(mha > 0));
    this.legend.replaceChildren(...rows.map(([kind, name, bytes]) => element("li", {}, svg("svg", { viewBox: "0 0 1 1", class: "key", "aria-hidden": "true" },
      svg("rect", { width: 1, height: 1, class: `memory-${kind}` })), `${name} ${bytesText(bytes)}`)));
    this.picture.setAttribute("aria-label", `Memory: ${parts.map(([, name, bytes]) => `${name} ${bytesText(bytes)}`).join(", ")}`);
    this.other.setAttribute("aria-label", `With ordinary attention the cache in use would take ${bytesText(mha)}`);
    this.element.hidden = false;
  }
}
