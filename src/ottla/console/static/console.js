// What pages do beyond their HTML: keys, times in the reader's zone, and a word when the console is away.
import { showTimes } from "./times.js";
import { listenToKeys } from "./keys.js";
import { listenToMessages } from "./messages.js";
import { showCharts } from "./charts.js";

showTimes(document);
listenToKeys();
listenToMessages();
showCharts();
document.documentElement.classList.add("script");

const away = document.getElementById("away");
document.body.addEventListener("htmx:afterSwap", () => showTimes(document));
document.body.addEventListener("htmx:sendError", () => { away.hidden = false; });
document.body.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.xhr.status) away.hidden = true;
});
// A part of a page that is live keeps the row that the reader is at, and what he has opened.
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) {
    event.detail.shouldSwap = false;
  }
});
// Nobody sees a page in the background: its live part asks again once somebody does.
const isLive = (element) => element.id === "live";
document.body.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && isLive(event.detail.elt)) event.preventDefault();
});
document.addEventListener("visibilitychange", () => {
  const live = document.getElementById("live");
  const address = live?.getAttribute("hx-get");
  if (!document.hidden && address) window.htmx.ajax("GET", address, { source: live });
});

// Names for the jump field, asked for as they are typed.
const jump = document.getElementById("jump");
if (jump) {
  let waiting;
  jump.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const response = await fetch(`/places?q=${encodeURIComponent(jump.value)}`);
      if (!response.ok) return;
      const names = await response.json();
      document.getElementById("places").replaceChildren(...names.map((name) => {
        const option = document.createElement("option");
        option.value = name;
        return option;
      }));
    }, 150);
  });
}
