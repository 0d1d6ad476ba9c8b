// The inputs of the forms for jobs and analyses: files are sent as they are chosen or dropped, and columns are guessed from them.

import { nameOf, pack } from "./pack.js";

const form = document.querySelector("form.new-job");
const token = form.elements.form_token.value;
const sending = document.getElementById("sending");
const buttons = form.querySelectorAll(".send button");
const task = document.getElementById("task");
const known = form.dataset.known.split(" ");
const MODELS = ["checkpoint", "against"];
let open = 0;

document.body.classList.add("scripted");

function busy(change) {
  open += change;
  for (const button of buttons) button.disabled = open > 0;
  sending.textContent = open ? "A file is on its way…" : "";
}

async function detailOf(answer) {
  try {
    return (await answer.json()).detail;
  } catch {
    return `the service answered with ${answer.status}`;
  }
}

function showRows({ columns, rows }) {
  const place = document.getElementById("preview");
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const name of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    for (const value of row) line.insertCell().textContent = value;
  }
  place.replaceChildren(table);
  place.hidden = false;
  place.tabIndex = 0;
}

/** Show only the columns of the chosen task, and those that are filled in. */
function showRoles() {
  const roles = task.value.split(" ");
  for (const field of form.querySelectorAll("[data-role]")) {
    field.hidden = !roles.includes(field.dataset.role) && !field.querySelector("input").value;
  }
}

/** Choose the task whose columns cover those that are filled in. */
function chooseTask() {
  const filled = [...form.querySelectorAll("[data-role]")].filter((field) => field.querySelector("input").value);
  const covers = (option) => filled.every((field) => option.value.split(" ").includes(field.dataset.role));
  const fitting = [...task.options].find(covers);
  if (fitting) task.value = fitting.value;
  showRoles();
}

/** Say what an uploaded model is; the checkpoint chooses the task. */
async function look(id, name, note) {
  const answer = await fetch(`/uploads/${id}/model`, { redirect: "error" });
  if (!answer.ok) return;
  const seen = await answer.json();
  note.textContent += `. ${seen.words}.`;
  if (!seen.columns || name !== "checkpoint") return;
  task.value = seen.columns;
  showRoles();
}

async function guess(id) {
  const answer = await fetch(`/uploads/${id}/columns`, { redirect: "error" });
  const seen = answer.ok ? await answer.json() : null;
  if (!seen) return;
  const names = document.getElementById("column-names");
  names.replaceChildren(...seen.columns.map((name) => new Option(name, name)));
  for (const [role, column] of Object.entries(seen.guess)) {
    const field = form.elements[`column.${role}`];
    if (field && !field.value && column !== role) field.value = column;
  }
  chooseTask();
  showRows(seen);
}

/** Send a form, telling how much has gone; fetch cannot. */
function post(body, tell) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/uploads");
    request.setRequestHeader("X-Form-Token", token);
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) tell(Math.floor((100 * event.loaded) / event.total));
    });
    request.addEventListener("load", () => resolve(new Response(request.response, { status: request.status })));
    request.addEventListener("error", reject);
    request.send(body);
  });
}

/** The file to send, and what to say of it: the one that was chosen, or an archive of those of a checkpoint. */
function oneOf(name, files) {
  const isData = !MODELS.includes(name);
  const isArchive = files.length === 1 && /\.(tar|tgz|zip|tar\.gz)$/.test(files[0].name);
  if (isArchive || (isData && files.length === 1)) return { file: files[0], told: "" };
  if (isData) throw new Error(`these are ${files.length} files; choose one`);
  const { archive, packed, left } = pack(files, known);
  return { file: archive, told: `. Packed ${packed.join(", ")}` + (left.length ? `; left out ${left.join(", ")}` : "") };
}

async function send(name, files) {
  const note = document.getElementById(`${name}-note`);
  if (!files.length) return;
  let chosen;
  try {
    chosen = oneOf(name, files);
  } catch (error) {
    note.textContent = `Not taken: ${error.message}.`;
    return;
  }
  const { file, told } = chosen;
  const body = new FormData();
  body.append("file", file);
  busy(1);
  note.textContent = `Sending ${file.name}…`;
  try {
    const answer = await post(body, (percent) => {
      note.textContent = `Sending ${file.name}: ${percent} %`;
    });
    if (!answer.ok) {
      note.textContent = `Not taken: ${await detailOf(answer)}`;
      return;
    }
    const stored = await answer.json();
    form.elements[name].value = stored.uri;
    note.textContent = `${stored.filename}, ${stored.bytes.toLocaleString("en")} bytes, SHA-256 ${stored.sha256.slice(0, 12)}…${told}`;
    if (name === "validation" || (name === "unlabelled" && !form.elements.validation.value)) await guess(stored.id);
    if (MODELS.includes(name)) await look(stored.id, name, note);
  } catch {
    note.textContent = "The file did not arrive; choose it again.";
  } finally {
    busy(-1);
  }
}

/** The files of what was dropped; of a directory those that lie in it, not in directories below. */
async function dropped(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const directory = entries.length === 1 && entries[0].isDirectory ? entries[0].createReader() : null;
  if (!directory) return [...transfer.files];
  const found = [];
  for (let some = null; some === null || some.length; ) {
    some = await new Promise((resolve, reject) => directory.readEntries(resolve, reject)); // some hundred at a time
    found.push(...some.filter((entry) => entry.isFile));
  }
  return Promise.all(found.map((entry) => new Promise((resolve, reject) => entry.file(resolve, reject))));
}

for (const input of form.querySelectorAll("[data-upload]")) {
  const within = (file) => !nameOf(file).includes("/") || known.includes(nameOf(file));
  input.addEventListener("change", () => send(input.dataset.upload, [...input.files].filter(within)));
}
for (const place of form.querySelectorAll(".reference")) {
  const { upload } = place.querySelector("[data-upload]").dataset;
  const mark = (event) => {
    event.preventDefault();
    place.classList.toggle("over", event.type === "dragover");
  };
  for (const kind of ["dragover", "dragleave", "drop"]) place.addEventListener(kind, mark);
  place.addEventListener("drop", async (event) => send(upload, await dropped(event.dataTransfer)));
}
task.addEventListener("change", showRoles);
chooseTask();
const given = form.elements.validation.value || form.elements.unlabelled?.value || "";
if (given.startsWith("upload:")) guess(given.slice("upload:".length));
document.querySelector("#wrong, #stops, #fine")?.scrollIntoView({ block: "center" });
