// A small chart of the last minutes.
import { element, svg } from "../dom.js";

const COUNT = 150; // values: five minutes
const FEW = 30; // a new chart is drawn as wide as that many would need
const WIDTH = 150;
const HEIGHT = 36;

export class Chart {
  // text(value): as it is shown.
  constructor(name, text) {
    this.name = name;
    this.text = text;
    this.values = [];
    this.area = svg("polygon", { class: "area" });
    this.line = svg("polyline", { class: "line" });
    this.picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", class: "chart" }, this.area, this.line);
    this.now = element("strong", { textContent: "–" });
    this.most = element("small");
    this.element = element("div", { className: "chart-box" }, element("div", { className: "chart-head" }, element("span", { textContent: name }), this.now, this.most),
      this.picture);
  }

  // value: null if unknown; limit: the most that is possible, if there is one.
  add(value, limit) {
    this.values.push(value);
    if (this.values.length > COUNT) this.values.shift();
    const most = Math.max(...this.values.filter((v) => v !== null), 0);
    this.now.textContent = value === null ? "–" : this.text(value);
    this.most.textContent = limit ? `of ${this.text(limit)}` : `most ${this.text(most)}`;
    this.picture.setAttribute("aria-label", `${this.name} over the last five minutes: now ${this.now.textContent}, ${this.most.textContent}`);
    this.draw(limit || most || 1);
  }

  draw(most) {
    const step = WIDTH / Math.max(this.values.length, FEW);
    const first = WIDTH - (this.values.length - 1) * step;
    const points = this.values.map((value, i) => `${(first + i * step).toFixed(1)},${(HEIGHT - 1 - ((value ?? 0) / most) * (HEIGHT - 3)).toFixed(1)}`);
    this.line.setAttribute("points", points.join(" "));
    this.area.setAttribute("points", `${first.toFixed(1)},${HEIGHT} ${points.join(" ")} ${WIDTH},${HEIGHT}`);
  }
}
