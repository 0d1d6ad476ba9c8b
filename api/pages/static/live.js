// Puts the parts of a page that have changed in their places, as the server sends them.
// What the reader has under the cursor or has ticked stays so. A page that nobody looks at asks for nothing.

const listeners = [];

/** Call back after each change, with the document. */
export function onChange(callback) {
  listeners.push(callback);
}

function put(id, html) {
  const place = document.getElementById(id);
  if (!place) return;
  const focused = place.contains(document.activeElement) ? document.activeElement.id : "";
  const ticked = [...place.querySelectorAll("input:checked")].map((input) => input.id);
  const opened = [...place.querySelectorAll("details")].map((details) => details.open);
  place.innerHTML = html;
  for (const name of ticked) {
    const input = document.getElementById(name);
    if (input) input.checked = true;
  }
  place.querySelectorAll("details").forEach((details, index) => {
    if (opened[index] !== undefined) details.open = opened[index];
  });
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function follow(url) {
  let source = null;
  let ended = false;
  const stop = () => {
    source?.close();
    source = null;
  };
  const start = () => {
    if (source || ended) return;
    source = new EventSource(url);
    source.addEventListener("parts", (event) => {
      for (const [id, html] of Object.entries(JSON.parse(event.data))) put(id, html);
      for (const callback of listeners) callback(document);
    });
    source.addEventListener("end", () => {
      ended = true;
      stop();
    });
    source.addEventListener("gone", () => location.reload());
    source.addEventListener("error", () => {
      // A refused connection is not tried again by the browser: the session has ended.
      if (source?.readyState === EventSource.CLOSED) location.reload();
    });
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  window.addEventListener("pagehide", stop);
  if (!document.hidden) start();
}

for (const element of document.querySelectorAll("[data-live]")) follow(element.dataset.live);
