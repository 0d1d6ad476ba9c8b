// What all charts are made of: an SVG with axes, as wide as its place, and scales from values to pixels.

const SPACE = "http://www.w3.org/2000/svg";
const ROOM = 50; // pixels for the name of the axis, which stands at its end
export const MARGIN = { top: 12, right: 12, bottom: 26, left: 52 };

/** Make an SVG element. */
export function make(name, attributes, parent, text) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent?.append(element);
  return element;
}

/** Round steps that cut a range into about so many. */
export function ticks(low, high, wanted) {
  const span = high - low || Math.abs(high) || 1;
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(value);
  return { values: found, digits: Math.max(0, Math.min(6, -Math.floor(Math.log10(step) + 1e-9))) };
}

/** An empty drawing with axes; gives the SVG and the scales. */
export function frame(place, { xs, ys, height, xTitle, rightRoom = 0 }) {
  const width = Math.max(place.clientWidth, 240);
  const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const right = width - MARGIN.right - rightRoom;
  const bottom = height - MARGIN.bottom;
  const x = (value) => MARGIN.left + ((value - xs[0]) / (xs[1] - xs[0] || 1)) * (right - MARGIN.left);
  const y = (value) => bottom - ((value - ys[0]) / (ys[1] - ys[0] || 1)) * (bottom - MARGIN.top);
  const rows = ticks(ys[0], ys[1], 5);
  for (const value of rows.values) {
    make("line", { class: "grid", x1: MARGIN.left, x2: right, y1: y(value), y2: y(value) }, svg);
    make("text", { class: "tick", x: MARGIN.left - 8, y: y(value) + 4, "text-anchor": "end" }, svg, value.toFixed(Math.max(rows.digits, 2)));
  }
  const columns = ticks(xs[0], xs[1], Math.max(2, Math.floor(width / 130)));
  for (const value of columns.values) {
    if (value % 1 || x(value) > right - ROOM) continue;
    make("text", { class: "tick", x: x(value), y: height - 8, "text-anchor": "middle" }, svg, value.toLocaleString("en"));
  }
  make("text", { class: "tick", x: right, y: height - 8, "text-anchor": "end" }, svg, xTitle);
  return { svg, x, y, left: MARGIN.left, right, top: MARGIN.top, bottom };
}

/** Draw again when the place gets another width. */
export function onResize(place, draw) {
  let width = place.clientWidth;
  new ResizeObserver(() => {
    if (place.clientWidth === width) return;
    width = place.clientWidth;
    draw();
  }).observe(place);
}
