// The path: a slider or a click on the curve chooses a model, which the table and the button follow.

import "./plain.js";

const form = document.getElementById("within");
const curve = document.getElementById("curve");
const allowed = document.getElementById("allowed");
const chosen = document.querySelector("#chosen strong");
const rows = [...document.querySelectorAll("tr[data-seq]")];
let picked = document.querySelector("tr.picked");

document.body.classList.add("scripted");

/** Mark the chosen model in the picture, which may have been drawn anew. */
function mark() {
  for (const point of curve.querySelectorAll("[data-seq]")) {
    point.classList.toggle("picked", point.dataset.seq === picked?.dataset.seq);
  }
}

function pick(row) {
  if (!row) return;
  picked?.classList.remove("picked");
  picked = row;
  row.classList.add("picked");
  const radio = row.querySelector("input");
  if (radio) radio.checked = true;
  const folded = row.closest("details");
  if (folded) folded.open = true;
  chosen.textContent = row.dataset.told;
  mark();
}

function fastest(most) {
  const affordable = rows.filter((row) => Number(row.dataset.cost) <= most + 1e-6);
  const better = (one, other) =>
    Number(one.dataset.times) - Number(other.dataset.times) || Number(other.dataset.cost) - Number(one.dataset.cost);
  return affordable.reduce((best, row) => (best && better(best, row) >= 0 ? best : row), null);
}

if (form) {
  form.addEventListener("input", () => {
    allowed.textContent = Number(form.value).toFixed(1);
    pick(fastest(Number(form.value)));
  });
  curve.addEventListener("choose", (event) => pick(rows.find((row) => row.dataset.seq === event.detail.dataset.seq)));
  for (const row of rows) row.querySelector("input")?.addEventListener("change", () => pick(row));
  new MutationObserver(mark).observe(curve, { childList: true });
  mark();
}
