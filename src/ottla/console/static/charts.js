// Lines over time with uPlot. A <figure data-chart="address"> is drawn, and drawn again every ten
// seconds; the script of uPlot is asked for by the first page that has one.
import { span } from "./times.js";

const EVERY_MS = 10000;
const HEIGHT = 150;
const TIME_WIDTH = 80;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const said = (value, unit) => (value == null ? "–" : unit === "ms" ? span(value) : short.format(value));

// In the reader's zone; uPlot's own names of times have a date in a second line, and may touch.
function timeOfDay(at, step) {
  const seconds = step < 60 ? { second: "2-digit" } : {};
  return new Date(at * 1000).toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...seconds });
}

function load(href) {
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    Object.assign(script, { src: href, onload: done, onerror: failed });
    document.head.append(script);
  });
}

function options(unit, name, width) {
  const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HEIGHT,
    cursor: { y: false },
    legend: { live: true },
    scales: { y: { range: (_, __, most) => [0, Math.max(most || 0, 1) * 1.1] } },
    axes: [{ ...axis, size: 32, space: TIME_WIDTH, values: (_, ticks, __, ___, step) => ticks.map((at) => timeOfDay(at, step)) }, { ...axis, size: 64, values: (_, ticks) => ticks.map((each) => said(each, unit)) }],
    series: [
      { value: (_, at) => (at == null ? "" : new Date(at * 1000).toLocaleTimeString()) },
      { label: name, stroke: colour("--blue"), fill: colour("--blue-soft"), width: 2, spanGaps: false, value: (_, each) => said(each, unit) },
    ],
  };
}

async function show(figure) {
  const place = figure.querySelector(".plot");
  const { unit, name } = figure.dataset;
  let plot = null;
  const draw = async () => {
    const response = await fetch(figure.dataset.chart).catch(() => null);
    if (!response?.ok) return;
    const { times_s, lines } = await response.json();
    const numbers = lines[unit];
    const known = numbers.filter((each) => each != null);
    figure.querySelector(".not-yet").hidden = known.length > 1;
    place.hidden = known.length < 2;
    if (known.length < 2) return;
    figure.setAttribute("aria-label", `${name}: now ${said(known.at(-1), unit)}, at most ${said(Math.max(...known), unit)}`);
    if (plot) plot.setData([times_s, numbers]);
    else plot = new uPlot(options(unit, name, place.clientWidth), [times_s, numbers], place);
  };
  const again = () => { plot?.destroy(); plot = null; draw(); };
  new ResizeObserver(() => plot?.setSize({ width: place.clientWidth, height: HEIGHT })).observe(place);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  await draw();
  setInterval(() => { if (!document.hidden) draw(); }, EVERY_MS);
}

export async function showCharts() {
  const figures = [...document.querySelectorAll("figure[data-chart]")];
  if (!figures.length) return;
  await load("/static/vendor/uplot-1.6.32.min.js");
  figures.forEach(show);
}
