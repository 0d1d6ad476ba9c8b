// Several jobs in one picture: the loss of each model as it stood, trial by trial.

import { frame, make, onResize } from "./plot.js";

const HEIGHT = 320;
const LETTER = 12; // pixels
const DASHES = ["", "8 3", "2 3", "10 3 2 3", "5 5", "12 4"];
const place = document.getElementById("curves");
let curves = [];

function draw() {
  const drawn = curves.filter((curve) => curve.steps.length);
  if (!drawn.length) {
    place.textContent = "None of these jobs has been measured yet.";
    return;
  }
  const losses = drawn.flatMap((curve) => curve.steps.map((step) => step[1]));
  const pad = (Math.max(...losses) - Math.min(...losses) || 1) * 0.08;
  const ys = [Math.min(...losses) - pad, Math.max(...losses) + pad];
  const view = frame(place, { xs: [0, Math.max(...drawn.map((curve) => curve.trials), 10)], ys, height: HEIGHT, xTitle: "trial", rightRoom: LETTER });
  const written = [];
  curves.forEach((curve, index) => {
    if (!curve.steps.length) return;
    let path = "";
    curve.steps.forEach(([seq, loss], at) => {
      const [x, y] = [view.x(seq).toFixed(1), view.y(loss).toFixed(1)];
      path += at ? `H${x}V${y}` : `M${x} ${y}`;
    });
    const end = view.x(curve.trials - 1);
    make("path", { class: `curve c${index}`, d: `${path}H${end.toFixed(1)}`, "stroke-dasharray": DASHES[index] }, view.svg);
    const last = curve.steps[curve.steps.length - 1][1];
    // Behind the end of its curve; behind other letters where curves end together.
    const spot = { x: end + 4, y: view.y(last) + 4 };
    while (written.some((one) => Math.abs(one.x - spot.x) < LETTER && Math.abs(one.y - spot.y) < LETTER)) spot.x += LETTER;
    written.push(spot);
    make("text", { class: `curve-name c${index}`, ...spot }, view.svg, curve.letter);
  });
  place.replaceChildren(view.svg);
  place.dataset.curves = String(drawn.length);
}

const answer = await fetch(place.dataset.points, { redirect: "error" });
curves = await answer.json();
draw();
onResize(place, draw);
