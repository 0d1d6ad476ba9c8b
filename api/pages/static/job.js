// One job: its pictures follow the pass.

import { onChange } from "./live.js";
import { pictures } from "./picture.js";
import "./sure.js";
import { writeTimes } from "./times.js";

const said = document.getElementById("said");
let state = document.getElementById("state").dataset.state;

onChange(() => {
  writeTimes(document);
  const now = document.getElementById("state").dataset.state;
  if (now !== state) {
    state = now;
    said.textContent = `The job is ${now}.`;
  }
  for (const picture of pictures) picture.draw();
});
writeTimes(document);
