// Pictures that the server has drawn: each is asked for in the width of its place, and what is pointed at, or reached by arrow
// keys, is read out below it.

const SPACE = "http://www.w3.org/2000/svg";
const LEAST = 280, MOST = 1600; // pixels that a picture can be drawn for
const PAUSE = 1000; // milliseconds between two drawings while a pass runs, at least
const REST = 20; // times as long as a drawing takes, the next one waits: a long pass costs the service no more than a short one
const NEAR = 40; // units within which a mark is meant
const PAD = 4; // units around what is chosen
const ALONG = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
const ACROSS = { ArrowDown: 1, ArrowUp: -1 };

class Picture {
  #place; #readout; #lines = null; #chosen = null; #asking = false; #again = false;

  /** The picture in this place; what is chosen is read out in the element behind it. */
  constructor(place) {
    this.#place = place;
    this.#readout = place.nextElementSibling;
    place.addEventListener("pointermove", (event) => this.#choose(this.#nearest(event)));
    place.addEventListener("pointerleave", () => this.#choose(null));
    place.addEventListener("keydown", (event) => this.#key(event));
    place.addEventListener("click", (event) => this.#take(this.#nearest(event)));
    new ResizeObserver(() => {
      if (this.#svg && this.#svg.viewBox.baseVal.width !== this.#width) this.draw();
    }).observe(place);
    this.#choose(null);
    if (place.querySelector("[data-later]")) this.draw();
  }

  get #svg() {
    return this.#place.querySelector("svg");
  }

  get #width() {
    return Math.min(Math.max(Math.floor(this.#place.clientWidth), LEAST), MOST);
  }

  /** Ask for it anew. One question at a time; news that comes meanwhile is asked for once more. */
  async draw() {
    if (this.#asking) {
      this.#again = true;
      return;
    }
    this.#asking = true;
    try {
      do {
        this.#again = false;
        const begun = performance.now();
        const url = new URL(this.#place.dataset.picture, location);
        url.searchParams.set("width", this.#width);
        const answer = await fetch(url, { redirect: "error" });
        const html = answer.ok ? await answer.text() : "";
        if (html) this.#put(html);
        await new Promise((ready) => setTimeout(ready, Math.max(PAUSE, REST * (performance.now() - begun))));
      } while (this.#again);
    } finally {
      this.#asking = false;
    }
  }

  #put(html) {
    const chosen = this.#chosen;
    this.#place.innerHTML = html;
    this.#lines = null;
    this.#choose(chosen && this.#marks().find((mark) => mark.text === chosen.text));
  }

  /** Lines of marks as they stand, from top to bottom, each from left to right. */
  #rows() {
    this.#lines ??= [...this.#place.querySelectorAll("[data-line]")]
      .map((line) => [...line.children].map((element) => this.#mark(element)).sort((one, other) => one.x - other.x))
      .filter((line) => line.length)
      .sort((one, other) => one[0].y - other[0].y);
    return this.#lines;
  }

  #marks() {
    return this.#rows().flat();
  }

  #mark(element) {
    const box = element.getBBox();
    const text = element.querySelector("title").textContent;
    return { element, box, text, x: box.x + box.width / 2, y: box.y + box.height / 2 };
  }

  #nearest(event) {
    const svg = this.#svg;
    if (!svg) return null;
    const frame = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / frame.width;
    const [x, y] = [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
    const away = (mark) => Math.hypot(mark.x - x, mark.y - y);
    const marks = this.#marks();
    const under = marks.find((mark) => mark.element === event.target);
    const found = under ?? marks.reduce((best, mark) => (best && away(best) <= away(mark) ? best : mark), null);
    return found && (under || away(found) < NEAR) ? found : null;
  }

  /** Tell the page that a mark was chosen for good. */
  #take(mark) {
    if (mark) this.#place.dispatchEvent(new CustomEvent("choose", { detail: mark.element }));
  }

  #key(event) {
    const rows = this.#rows();
    if (event.key === "Enter") this.#take(this.#chosen);
    if (!rows.length || !(event.key in ALONG || event.key in ACROSS)) return;
    event.preventDefault();
    const row = Math.max(rows.findIndex((line) => line.includes(this.#chosen)), 0);
    const line = rows[row];
    const at = line.indexOf(this.#chosen);
    if (event.key in ALONG) {
      this.#choose(line[Math.min(Math.max(at + ALONG[event.key], 0), line.length - 1)]);
      return;
    }
    const other = rows[Math.min(Math.max(row + ACROSS[event.key], 0), rows.length - 1)];
    const x = at < 0 ? 0 : line[at].x;
    this.#choose(other.reduce((best, mark) => (Math.abs(best.x - x) <= Math.abs(mark.x - x) ? best : mark)));
  }

  #choose(mark) {
    this.#chosen = mark ?? null;
    this.#place.querySelector(".cursor")?.remove();
    this.#readout.textContent = mark?.text ?? this.#place.dataset.hint;
    if (!mark) return;
    const { x, y, width, height } = mark.box;
    const cursor = document.createElementNS(SPACE, "rect");
    const sides = { class: "cursor", x: x - PAD, y: y - PAD, width: width + 2 * PAD, height: height + 2 * PAD, rx: PAD };
    for (const [name, value] of Object.entries(sides)) cursor.setAttribute(name, value);
    this.#svg.append(cursor);
  }
}

/** All pictures of the page. */
export const pictures = [...document.querySelectorAll("[data-picture]")].map((place) => new Picture(place));
