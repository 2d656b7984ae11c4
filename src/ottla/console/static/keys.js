// j and k move through the rows of a page, Enter opens one, g and a letter goes to a page.
const rows = () => [...document.querySelectorAll("main [data-row]")].filter((row) => row.offsetParent);

function move(step) {
  const all = rows();
  if (!all.length) return;
  const now = all.findIndex((row) => row.classList.contains("at"));
  const next = all[Math.min(Math.max(now + step, 0), all.length - 1)];
  all[now]?.classList.remove("at");
  next.classList.add("at");
  next.scrollIntoView({ block: "nearest" });
  const link = next.querySelector("a");
  link?.focus({ preventScroll: true });
}

export function listenToKeys() {
  let first = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const before = first;
    first = "";
    if (before === "g") {
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        link.click();
        return;
      }
    }
    if (event.key === "g") first = "g";
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "?") document.getElementById("keys").showModal();
    else if (event.key === "/") {
      event.preventDefault();
      document.getElementById("jump")?.focus();
    }
  });
}
