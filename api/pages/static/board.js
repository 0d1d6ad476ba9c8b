// The board: times in words, and the button that compares what is ticked.

import { onChange } from "./live.js";
import { makeSortable } from "./sort.js";
import { writeTimes } from "./times.js";

const MOST = 6;
const form = document.getElementById("compare");
const button = document.getElementById("compare-button");
const note = document.getElementById("compare-note");

function count() {
  const ticked = form.querySelectorAll("input[name=job]:checked").length;
  button.disabled = ticked < 2 || ticked > MOST;
  note.textContent = ticked
    ? `${ticked} ticked${ticked > MOST ? `; at most ${MOST} fit side by side` : ""}`
    : "Tick two to six jobs to see them side by side.";
}

function refresh() {
  writeTimes(document);
  makeSortable();
  count();
}

form.addEventListener("change", count);
onChange(refresh);
refresh();
