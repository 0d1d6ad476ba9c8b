// Writes times as how long ago they were; the time itself, in the reader's zone, stays as the tooltip.

const STEPS = [
  [60, "second"],
  [60, "minute"],
  [24, "hour"],
  [7, "day"],
  [4.35, "week"],
  [12, "month"],
  [Infinity, "year"],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const whole = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

function ago(date) {
  let value = (date - Date.now()) / 1000;
  for (const [length, unit] of STEPS) {
    if (Math.abs(value) < length) return unit === "second" ? "just now" : words.format(Math.round(value), unit);
    value /= length;
  }
  return whole.format(date);
}

/** Write all times of a document. */
export function writeTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const date = new Date(element.dateTime);
    element.textContent = element.dataset.whole === undefined ? ago(date) : whole.format(date);
    element.title = whole.format(date);
  }
}
