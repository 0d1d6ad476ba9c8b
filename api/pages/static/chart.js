// The loss of each trial: accepted, refined and rejected ones apart in form and colour, the least so far, and the base.

import { frame, make, onResize } from "./plot.js";

const HEIGHT = 300;
const MARGIN = 0.2; // room above and below what was close, as a share of it
const LEAST_SPAN = 0.02; // of the base's loss, so that a flat pass looks flat
const NEAR = 12; // pixels between two words
const SEQ = 0, LOSS = 1, VERDICT = 2, BOUND = 3, MIN = 4, ELEMENT = 5, HELPED = 6, SAMPLES = 7;

function kindOf(point) {
  return point[VERDICT] === "reject" && point[BOUND] ? "bound" : point[VERDICT];
}

/** The forms and words of the marks, as the legend shows them. */
function readMarks(legend) {
  const marks = {};
  for (const path of legend.querySelectorAll("path[data-mark]")) {
    marks[path.dataset.mark] = { form: path.getAttribute("d").slice("M0 0".length), verdict: path.dataset.verdict };
  }
  return marks;
}

export class LossChart {
  /** A chart in this place, with the marks of this legend, which tells in the readout what is pointed at. */
  constructor(place, legend, readout) {
    this.place = place;
    this.marks = readMarks(legend);
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
    for (const point of points) point[LOSS] ??= Infinity;
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
    const view = frame(place, { ...this.#ranges(), height: HEIGHT, xTitle: "trial" });
    this.view = view;
    const base = points[0][LOSS];
    if (points.some((point) => !(view.y(point[LOSS]) >= view.top))) this.#gutter("higher", view.top);
    if (points.some((point) => view.y(point[LOSS]) > view.bottom)) this.#gutter("lower", view.bottom);
    make("line", { class: "base-line", x1: view.left, x2: view.right, y1: view.y(base), y2: view.y(base) }, view.svg);
    const paths = { bound: [], reject: [], refine: [], accept: [] };
    const seen = new Set();
    let least = `M${view.x(points[0][SEQ]).toFixed(1)} ${view.y(base).toFixed(1)}`;
    let low = base;
    for (const point of points) {
      const x = view.x(point[SEQ]);
      const y = this.#height(point);
      const kind = kindOf(point);
      if (kind === "accept" && point[LOSS] < low) {
        low = point[LOSS];
        least += `H${x.toFixed(1)}V${view.y(low).toFixed(1)}`;
      }
      const spot = `${kind}${Math.round(x)}/${Math.round(y)}`;
      if (!(kind in paths) || seen.has(spot)) continue;
      seen.add(spot);
      paths[kind].push(`M${x.toFixed(1)} ${y.toFixed(1)}${this.marks[kind].form}`);
    }
    for (const kind of ["bound", "reject", "refine"]) make("path", { class: `mark ${kind}`, d: paths[kind].join("") }, view.svg);
    make("path", { class: "least-line", d: `${least}H${view.x(this.last).toFixed(1)}` }, view.svg);
    make("path", { class: "mark accept", d: paths.accept.join("") }, view.svg);
    this.cursor = make("g", { class: "cursor", visibility: "hidden" }, view.svg);
    place.replaceChildren(view.svg);
    place.dataset.trials = String(this.last + 1);
    this.#choose(this.chosen);
  }

  /** What was close fills the picture: the base, what was accepted and what was refined. */
  #ranges() {
    const base = this.points[0][LOSS];
    const losses = this.points.filter((point) => point[VERDICT] !== "reject").map((point) => point[LOSS]);
    let [low, high] = losses.reduce(([least, most], loss) => [Math.min(least, loss), Math.max(most, loss)], [base, base]);
    const lacking = Math.max(0, LEAST_SPAN * Math.abs(base) - (high - low)) || (high > low ? 0 : 1);
    [low, high] = [low - lacking / 2, high + lacking / 2];
    const room = MARGIN * (high - low);
    return { xs: [0, Math.max(this.last, 10)], ys: [low - room, high + room] };
  }

  /** Where a trial stands; one beyond the axis at its edge, and a loss that is no number at the upper one. */
  #height(point) {
    const { y, top, bottom } = this.view;
    const at = y(point[LOSS]);
    return at >= top ? Math.min(at, bottom) : top;
  }

  /** Say what stands at an edge of the picture, in place of the losses beside it. */
  #gutter(word, at) {
    const { svg, left } = this.view;
    for (const tick of svg.querySelectorAll("text.tick")) {
      const isLoss = Number(tick.getAttribute("x")) < left;
      if (isLoss && Math.abs(tick.getAttribute("y") - at) < NEAR) tick.remove();
    }
    make("text", { class: "tick", x: left - 8, y: at + 4, "text-anchor": "end" }, svg, word);
  }

  #words(point) {
    const loss = `${point[BOUND] ? "at least " : ""}${point[LOSS].toFixed(4)}`;
    if (point[VERDICT] === "base") return `Untouched model: loss ${loss}`;
    const told = `Trial ${point[SEQ]}: ${point[ELEMENT]} ${this.marks[kindOf(point)].verdict}, loss ${loss}`;
    return `${told}, least before ${point[MIN].toFixed(4)}, helped ${point[HELPED]} of ${point[SAMPLES]}`;
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
    const y = this.#height(point);
    this.cursor.setAttribute("visibility", "visible");
    this.cursor.replaceChildren();
    make("line", { x1: x, x2: x, y1: this.view.top, y2: this.view.bottom }, this.cursor);
    make("circle", { cx: x, cy: y, r: 7 }, this.cursor);
    this.readout.textContent = this.#words(point);
  }
}
