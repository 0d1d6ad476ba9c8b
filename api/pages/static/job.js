// One job: the chart and the map follow the pass.

import { LossChart } from "./chart.js";
import { onChange } from "./live.js";
import { useMap } from "./map.js";
import "./sure.js";
import { writeTimes } from "./times.js";

const place = document.getElementById("chart");
const chart = new LossChart(place, document.getElementById("chart-legend"), document.getElementById("chart-readout"));
const refreshMap = useMap(document.getElementById("map"), document.getElementById("map-readout"));
const said = document.getElementById("said");
let state = document.getElementById("state").dataset.state;
let asking = false;
let again = false;

async function follow() {
  // One question at a time; news that comes meanwhile is asked for once more.
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  try {
    const answer = await fetch(`${place.dataset.points}?after=${chart.last}`, { redirect: "error" });
    if (answer.ok) chart.add(await answer.json());
  } finally {
    asking = false;
  }
  if (again) {
    again = false;
    await follow();
  }
}

function refresh() {
  writeTimes(document);
  refreshMap();
  const now = document.getElementById("state").dataset.state;
  if (now !== state) {
    state = now;
    said.textContent = `The job is ${now}.`;
  }
}

onChange(() => {
  refresh();
  follow();
});
refresh();
follow();
