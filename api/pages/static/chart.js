// The loss of each trial: accepted, refined and rejected ones apart in form and colour, the least so far, and the base.

import { frame, make, onResize } from "./plot.js";

const HEIGHT = 300;
const HIGH_SHARE = 0.9;
const SEQ = 0, LOSS = 1, VERDICT = 2, BOUND = 3, MIN = 4, ELEMENT = 5, HELPED = 6, TOTAL = 7;

const MARKS = {
  bound: (x, y) => `M${x} ${y + 3}v-6`,
  reject: (x, y) => `M${x} ${y}h.01`,
  refine: (x, y) => `M${x} ${y - 4}l4 4l-4 4l-4 -4z`,
  accept: (x, y) => `M${x - 5} ${y - 4}h10l-5 9z`,
};

function kindOf(point) {
  return point[VERDICT] === "reject" && point[BOUND] ? "bound" : point[VERDICT];
}

function words(point) {
  const loss = `${point[BOUND] ? "at least " : ""}${point[LOSS].toFixed(4)}`;
  if (point[VERDICT] === "base") return `Untouched model: loss ${loss}`;
  const verdict = { accept: "accepted", refine: "refined", reject: "rejected" }[point[VERDICT]];
  return `Trial ${point[SEQ]}: ${point[ELEMENT]} ${verdict}, loss ${loss}, least before ${point[MIN].toFixed(4)}, helped ${point[HELPED]} of ${point[TOTAL]}`;
}

export class LossChart {
  /** A chart in this place, which tells in the readout what is pointed at. */
  constructor(place, readout) {
    this.place = place;
    this.readout = readout;
    this.points = [];
    this.step = 1;
    this.chosen = -1;
    place.addEventListener("pointermove", (event) => this.#point(event));
    place.addEventListener("pointerleave", () => this.#choose(-1));
    place.addEventListener("keydown", (event) => this.#key(event));
    onResize(place, () => this.draw());
  }

  /** Number of the last trial that is there. */
  get last() {
    return this.points.length ? this.points[this.points.length - 1][SEQ] : -1;
  }

  /** Add trials in order. */
  add({ points, step }) {
    this.points.push(...points);
    this.step = Math.max(this.step, step);
    this.draw();
  }

  draw() {
    const { points, place } = this;
    if (!points.length) {
      this.readout.textContent = "There is no trial yet.";
      return;
    }
    const { xs, ys } = this.#ranges();
    const view = frame(place, { xs, ys, height: HEIGHT, xTitle: "trial" });
    this.view = view;
    const base = points[0][LOSS];
    make("line", { class: "base-line", x1: view.left, x2: view.right, y1: view.y(base), y2: view.y(base) }, view.svg);
    const paths = { bound: [], reject: [], refine: [], accept: [] };
    const seen = new Set();
    let least = `M${view.x(points[0][SEQ]).toFixed(1)} ${view.y(base).toFixed(1)}`;
    let low = base;
    for (const point of points) {
      const x = view.x(point[SEQ]);
      const y = Math.max(view.y(point[LOSS]), view.top);
      const kind = kindOf(point);
      if (kind === "accept" && point[LOSS] < low) {
        low = point[LOSS];
        least += `H${x.toFixed(1)}V${view.y(low).toFixed(1)}`;
      }
      const spot = `${kind}${Math.round(x)}/${Math.round(y)}`;
      if (!(kind in paths) || seen.has(spot)) continue;
      seen.add(spot);
      paths[kind].push(MARKS[kind](+x.toFixed(1), +y.toFixed(1)));
    }
    for (const kind of ["bound", "reject", "refine"]) make("path", { class: `mark ${kind}`, d: paths[kind].join("") }, view.svg);
    make("path", { class: "least-line", d: `${least}H${view.x(this.last).toFixed(1)}` }, view.svg);
    make("path", { class: "mark accept", d: paths.accept.join("") }, view.svg);
    this.cursor = make("g", { class: "cursor", visibility: "hidden" }, view.svg);
    place.replaceChildren(view.svg);
    place.dataset.trials = String(this.last + 1);
    this.#choose(this.chosen);
  }

  /** The lines of interest fill the picture; losses far above stand at its upper edge. */
  #ranges() {
    const losses = this.points.map((point) => point[LOSS]).filter(Number.isFinite).sort((a, b) => a - b);
    const base = this.points[0][LOSS];
    const low = losses[0];
    const high = Math.max(base, losses[Math.floor((losses.length - 1) * HIGH_SHARE)]);
    const pad = (high - low || Math.abs(high) || 1) * 0.08;
    return { xs: [0, Math.max(this.last, 10)], ys: [low - pad, high + pad] };
  }

  #point(event) {
    if (!this.view) return;
    const at = event.clientX - this.place.getBoundingClientRect().left;
    let nearest = -1;
    let distance = Infinity;
    this.points.forEach((point, index) => {
      const away = Math.abs(this.view.x(point[SEQ]) - at);
      if (away < distance) [nearest, distance] = [index, away];
    });
    this.#choose(nearest);
  }

  #key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || !this.points.length) return;
    event.preventDefault();
    const wanted = this.chosen + steps[event.key];
    this.#choose(Math.min(Math.max(wanted, 0), this.points.length - 1));
  }

  #choose(index) {
    this.chosen = index;
    const point = this.points[index];
    if (!point || !this.view) {
      this.cursor?.setAttribute("visibility", "hidden");
      const thinned = this.step > 1 ? `Every ${this.step}th rejected trial is shown. ` : "";
      this.readout.textContent = `${thinned}Point at a mark, or use the arrow keys, to read a trial.`;
      return;
    }
    const x = this.view.x(point[SEQ]);
    const y = Math.max(this.view.y(point[LOSS]), this.view.top);
    this.cursor.setAttribute("visibility", "visible");
    this.cursor.replaceChildren();
    make("line", { x1: x, x2: x, y1: this.view.top, y2: this.view.bottom }, this.cursor);
    make("circle", { cx: x, cy: y, r: 7 }, this.cursor);
    this.readout.textContent = words(point);
  }
}
