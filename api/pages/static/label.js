// Labels of changed answers: the next text is shown at once, and what was said of the last one is sent meanwhile.

const cards = document.getElementById("cards");
const progress = document.getElementById("progress");
const none = document.getElementById("none");
const undo = document.getElementById("undo");
const trouble = document.getElementById("trouble");
const gone = new Set(); // rows that were labelled or skipped here
const skipped = new Set();
const history = []; // the forms of those, the last one last
let sending = Promise.resolve();
let pending = 0;

document.body.classList.add("scripted");

const asked = () => [...cards.children];
const present = () => asked().find((form) => !form.hidden);

function show(form) {
  for (const one of asked()) one.hidden = one !== form;
  none.hidden = Boolean(form);
  const why = pending ? "waiting" : skipped.size ? "skipped" : "done";
  for (const one of none.children) one.hidden = one.dataset.none !== why;
  undo.hidden = history.length === 0;
  if (form) {
    (form.querySelector("input[type=number]") ?? form.querySelector(".text")).focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

/** Take over what the service asks for now. A text that somebody is reading stays while anything is asked for, also where it counts
 * no more: what is pressed next is meant for it, and would else be stored as the label of another. */
function follow({ progress: html, rows, cards: more }) {
  progress.innerHTML = html;
  const held = present();
  const stays = (form) => rows.includes(form.dataset.row) || "kept" in form.dataset || (form === held && rows.length);
  for (const form of asked()) if (!stays(form)) form.remove();
  const made = document.createElement("template");
  made.innerHTML = more;
  const known = new Set(asked().map((form) => form.dataset.row));
  for (const form of [...made.content.children]) {
    if (!gone.has(form.dataset.row) && !known.has(form.dataset.row)) cards.append(form);
  }
  if (!held?.isConnected) show(asked()[0]);
}

async function post(body) {
  body.set("skip", [...skipped].join(" "));
  body.set("have", asked().map((form) => form.dataset.row).join(" "));
  const asJson = { Accept: "application/json" };
  const answer = await fetch(undo.action, { method: "POST", body, headers: asJson, redirect: "error", keepalive: true });
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw new Error(said.detail ?? `the service answered with ${answer.status}`);
  }
  follow(await answer.json());
}

/** Send one after the other, so that answers come in order. */
function send(body, back) {
  pending += 1;
  show(present() ?? asked()[0]);
  sending = sending.then(() => post(body)).then(
    () => {
      pending -= 1;
      trouble.hidden = true;
      if (!present()) show(asked()[0]);
    },
    (error) => {
      pending -= 1;
      trouble.textContent = `The last label did not arrive: ${error.message}. It is asked again.`;
      trouble.hidden = false;
      back();
    },
  );
}

// What waits for its turn would be lost with the page.
addEventListener("beforeunload", (event) => {
  if (pending) event.preventDefault();
});

function putBack(form) {
  gone.delete(form.dataset.row);
  skipped.delete(form.dataset.row);
  if (history.includes(form)) history.splice(history.indexOf(form), 1);
  form.dataset.kept = "";
  cards.prepend(form);
  show(form);
}

cards.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target;
  const body = new FormData(form, event.submitter);
  gone.add(form.dataset.row);
  if (event.submitter?.value === "skip") skipped.add(form.dataset.row);
  history.push(form);
  form.remove();
  send(body, () => putBack(form));
});

undo.addEventListener("submit", (event) => {
  const form = history.at(-1);
  if (!form) return; // what was done before this page was loaded
  event.preventDefault();
  const wasSkipped = skipped.has(form.dataset.row);
  putBack(form);
  if (wasSkipped) return;
  const body = new FormData(undo);
  body.set("row", form.dataset.row);
  send(body, () => {});
});

cards.addEventListener("input", ({ target }) => {
  if (target.type !== "search") return;
  const wanted = target.value.trim().toLowerCase();
  for (const choice of target.closest("form").querySelectorAll(".choices > *")) {
    choice.hidden = !choice.textContent.toLowerCase().includes(wanted);
  }
});

/** What a key stands for in a form: a choice, of words that of the first word without one, or a button. */
function meantBy(key, form) {
  const open = [...form.querySelectorAll("fieldset")].find((one) => !one.querySelector("input:checked"));
  const within = form.dataset.kind === "words" ? (open ?? form.querySelector("fieldset:last-of-type")) : form;
  return within.querySelector(`[data-key="${key}"]`) ?? form.querySelector(`.steps [data-key="${key}"]`);
}

/** A second click of two is for the text that was there before. */
cards.addEventListener("click", (event) => {
  if (event.detail > 1 && event.target.closest(".choices button")) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target.type === "search") {
    if (key !== "Enter") return;
    event.preventDefault(); // it would press the first button of all
    const left = event.target.closest("form").querySelectorAll(".choices > :not([hidden])");
    if (left.length === 1) left[0].click();
    return;
  }
  if (key === "u" && !undo.hidden) {
    event.preventDefault();
    undo.requestSubmit();
    return;
  }
  const form = present();
  const isOwn = key === "Enter" && event.target.closest("a, button, summary");
  if (!form || isOwn || !/^([a-z0-9]|Enter)$/.test(key)) return;
  const meant = meantBy(key, form);
  if (!meant) return;
  event.preventDefault();
  meant.click();
});
