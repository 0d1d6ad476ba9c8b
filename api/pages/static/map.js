// The map of a model: what is pointed at or has the focus is told below it, and arrow keys go from element to element.

/** Make the map usable. It may be exchanged for a newer one at any time. */
export function useMap(place, readout) {
  const tell = (cell) => {
    readout.textContent = cell?.getAttribute("aria-label") ?? "Point at an element, or use Tab and the arrow keys, to read its trial.";
  };
  const cellsOf = (row) => [...row.querySelectorAll("rect[role=gridcell]")];
  const rows = () => [...place.querySelectorAll(".map-row")].filter((row) => cellsOf(row).length);

  const enter = () => {
    const first = rows()[0] && cellsOf(rows()[0])[0];
    if (first && !place.querySelector("rect[tabindex='0']")) first.setAttribute("tabindex", "0");
  };
  const go = (cell) => {
    place.querySelectorAll("rect[tabindex='0']").forEach((one) => one.setAttribute("tabindex", "-1"));
    cell.setAttribute("tabindex", "0");
    cell.focus();
  };
  place.addEventListener("pointerover", (event) => {
    if (event.target.matches("rect[role=gridcell]")) tell(event.target);
  });
  place.addEventListener("pointerleave", () => tell(null));
  place.addEventListener("focusin", (event) => {
    if (event.target.matches("rect[role=gridcell]")) tell(event.target);
  });
  place.addEventListener("keydown", (event) => {
    const row = event.target.closest(".map-row");
    if (!row || !event.target.matches("rect")) return;
    const all = rows();
    const mine = cellsOf(row);
    const column = mine.indexOf(event.target);
    const line = all.indexOf(row);
    const other = (step) => {
      const cells = all[line + step] && cellsOf(all[line + step]);
      return cells?.[Math.min(column, cells.length - 1)];
    };
    const target = {
      ArrowRight: () => mine[column + 1],
      ArrowLeft: () => mine[column - 1],
      ArrowDown: () => other(1),
      ArrowUp: () => other(-1),
      Home: () => mine[0],
      End: () => mine[mine.length - 1],
    }[event.key]?.();
    if (target) {
      event.preventDefault();
      go(target);
    }
  });
  tell(null);
  enter();
  return enter;
}
