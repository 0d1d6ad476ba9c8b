// The form for a new job: sends files as they are chosen, and guesses columns from what was sent.

const form = document.getElementById("new-job");
const token = form.elements.form_token.value;
const sending = document.getElementById("sending");
const buttons = form.querySelectorAll(".send button");
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
  showRows(seen);
}

async function send(input) {
  const name = input.dataset.upload;
  const note = document.getElementById(`${name}-note`);
  const file = input.files[0];
  if (!file) return;
  const body = new FormData();
  body.append("file", file);
  busy(1);
  note.textContent = `Sending ${file.name}…`;
  try {
    const answer = await fetch("/uploads", { method: "POST", body, headers: { "X-Form-Token": token }, redirect: "error" });
    if (!answer.ok) {
      note.textContent = `Not taken: ${await detailOf(answer)}`;
      return;
    }
    const stored = await answer.json();
    form.elements[name].value = stored.uri;
    note.textContent = `${stored.filename}, ${stored.bytes.toLocaleString("en")} bytes, SHA-256 ${stored.sha256.slice(0, 12)}…`;
    if (name === "validation") await guess(stored.id);
  } catch {
    note.textContent = "The file did not arrive; choose it again.";
  } finally {
    busy(-1);
  }
}

for (const input of form.querySelectorAll("[data-upload]")) input.addEventListener("change", () => send(input));
const given = form.elements.validation.value;
if (given.startsWith("upload:")) guess(given.slice("upload:".length));
document.querySelector("#wrong, #stops, #fine")?.scrollIntoView({ block: "center" });
