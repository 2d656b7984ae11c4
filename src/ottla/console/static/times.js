// Each <time> is in UTC. The reader sees it in his own zone, and UTC when he points at it.
const two = (number) => String(number).padStart(2, "0");

export function local(at) {
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const ms = String(at.getMilliseconds()).padStart(3, "0");
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${ms}`;
}

export function showTimes(root) {
  for (const each of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(each.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    each.dataset.local = "";
    each.textContent = at.getTimezoneOffset() ? local(at) : each.textContent;
  }
}

export function span(ms) {
  const [size, unit] = [[86400e3, "d"], [3600e3, "h"], [60e3, "min"], [1e3, "s"], [1, "ms"]].find(([each]) => ms >= each) ?? [1, "ms"];
  return `${Number((ms / size).toPrecision(3))} ${unit}`;
}
