// A live tail and a search over a whole topic, by server-sent events.
import { showTimes } from "./times.js";

const MAX_ROWS = 1000;
const find = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");
let stream = null;

function begin(button, words) {
  end();
  find("rows").replaceChildren();
  find("next")?.remove();
  find("none").hidden = true;
  find("stop").hidden = false;
  const tail = button.id === "tail";
  find("bar").hidden = tail;
  find("progress").textContent = words;
  stream = new EventSource(button.dataset.url);
  stream.addEventListener("rows", (event) => show(event.data, tail));
  stream.addEventListener("state", (event) => say(JSON.parse(event.data), tail));
  stream.addEventListener("failed", (event) => end(event.data));
  stream.addEventListener("done", (event) => {
    const said = find("progress").textContent;
    end(event.data === "whole" ? `${said}. That is all.` : `${said}. Stopped: a list of more is of no use; export it.`);
  });
  // The browser connects again by itself: that is right for a tail. A search would begin again.
  stream.onerror = () => (tail ? say({ lost: true }, true) : end("The console does not respond. The search has stopped."));
}

function show(html, tail) {
  const rows = find("rows");
  // The server has escaped what is in the records; scripts in a template do not run in any case.
  const template = document.createElement("template");
  template.innerHTML = `<table><tbody>${html}</tbody></table>`;
  const added = [...template.content.querySelectorAll("tr")];
  if (tail) rows.prepend(...added);
  else rows.append(...added);
  while (rows.rows.length > MAX_ROWS) rows.lastElementChild.remove();
  showTimes(rows);
}

function say(state, tail) {
  if (!state.lost) warn(state);
  const progress = find("progress");
  if (state.lost) progress.textContent = "The console does not respond. Connecting again …";
  else if (state.away) progress.textContent = "No broker responds. Waiting for one …";
  else if (tail) {
    progress.textContent = `Live: ${number(state.looked)} looked at${state.skipped ? `, ${number(state.skipped)} skipped (too fast to show)` : ""}`;
  } else {
    find("bar").value = state.total ? state.passed / state.total : 1;
    progress.textContent = `${number(state.found)} found; looked at ${number(state.looked)} records, ${state.total ? Math.floor((100 * state.passed) / state.total) : 100} %`;
  }
}

// What was searched as bytes because the registry is away: what matches there is not known.
function warn(state) {
  const place = find("unasked");
  place.hidden = !state.unasked;
  if (state.unasked) place.textContent = `${number(state.unasked)} records were searched as bytes, because the registry does not say what is in them: ${state.why}`;
}

function end(words) {
  stream?.close();
  stream = null;
  find("stop").hidden = true;
  find("bar").hidden = true;
  if (words) find("progress").textContent = words;
  find("none").hidden = find("rows").rows.length > 0;
}

export function listenToMessages() {
  const tail = find("tail");
  if (!tail) return;
  tail.addEventListener("click", () => begin(tail, "Live: waiting for new records …"));
  find("search").addEventListener("click", () => begin(find("search"), "Searching …"));
  find("stop").addEventListener("click", () => end(`${find("progress").textContent}. Stopped.`));
  const start = document.querySelector("#query [name=start]");
  const choose = () => {
    for (const each of document.querySelectorAll("#query [data-for]")) each.hidden = each.dataset.for !== start.value;
  };
  start.addEventListener("change", choose);
  choose();
}
