// Tables whose rows are sorted by a click on the head of a column. What is sorted is what the page shows.

let chosen = null; // the place of the column, and whether it goes up

function value(row, place) {
  const cell = row.cells[place];
  const given = cell.dataset.value;
  if (given === undefined) return cell.textContent.trim().toLowerCase();
  return given === "" ? -Infinity : Number(given);
}

function sort(table) {
  if (!chosen) return;
  const sign = chosen.goesUp ? 1 : -1;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [value(row, chosen.place), row]);
  rows.sort(([one], [other]) => sign * (one < other ? -1 : one > other ? 1 : 0));
  body.append(...rows.map(([, row]) => row));
  table.tHead.rows[0].cells[chosen.place].setAttribute("aria-sort", chosen.goesUp ? "ascending" : "descending");
}

/** Make the heads of sortable tables into buttons, and sort as was chosen before the page changed. */
export function makeSortable() {
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    if (table.querySelector("thead button")) continue;
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      if (!place) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "plain";
      button.id = `sort-${place}`;
      button.append(...head.childNodes);
      button.addEventListener("click", () => {
        const goesUp = chosen?.place === place ? !chosen.goesUp : !head.classList.contains("num");
        chosen = { place, goesUp };
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        sort(table);
      });
      head.append(button);
    });
    sort(table);
  }
}
