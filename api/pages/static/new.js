// The form for a new job: what its knobs are as the chosen goal or preset has them.

import "./inputs.js";

const form = document.getElementById("new-job");
const usual = JSON.parse(form.dataset.usual);

/** Say in each knob what it is where nothing is typed: as the chosen goal or preset has it. */
function showUsual() {
  const goal = form.querySelector("[name=goal]:checked")?.value;
  const values = usual[goal || form.elements.preset.value] ?? {};
  for (const element of form.querySelectorAll("[data-usual]")) {
    const value = values[element.dataset.usual] ?? "not of this method";
    if (element.tagName === "OPTION") element.textContent = `as chosen above: ${value}`;
    else element.placeholder = value;
  }
}

form.addEventListener("change", showUsual);
showUsual();
