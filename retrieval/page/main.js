// The page: what is shown, and what people do to it.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { inputText, inputTime } from "./format.js";
import { search } from "./search.js";
import { change, onChange, read, shownTime, state } from "./state.js";
import { showStatus } from "./status.js";

const by = (id) => document.getElementById(id);
const known = new Map();
const before = []; // times that were shown
let charts = [], stopLive = null, statusClock = null, reload = null;

function say(words, good = false) {
  by("message").className = good ? "good" : "";
  by("message").textContent = words;
  if (good) setTimeout(() => by("message").textContent === words && say(""), 4000);
}
const failed = (error) => say(error.status === 401 ? "Log in to see this." : error.message);

// --- charts

async function learn(names) {
  const missing = names.filter((name) => !known.has(name));
  for (const [name, signal] of await api.describe(missing)) known.set(name, signal);
}

async function open(name, onto = null) {
  try {
    await learn([name]);
  } catch (error) {
    return failed(error);
  }
  say("");
  const wanted = state.charts.map((chart) => ({ ...chart, signals: [...chart.signals] }));
  if (onto !== null && wanted[onto]) {
    if (!wanted[onto].signals.includes(name)) wanted[onto].signals.push(name);
  } else wanted.push({ mode: "trend", signals: [name] });
  change({ view: "trends", charts: wanted });
}

function build() {
  const root = by("charts");
  by("empty").hidden = state.charts.length > 0;
  for (const [index, wanted] of state.charts.entries()) {
    const same = charts[index];
    if (same && JSON.stringify(same.wanted) === JSON.stringify(wanted)) continue;
    const made = document.importNode(by("chart").content, true).firstElementChild;
    const chart = new Chart(made, wanted, known, { failed, zoom });
    wire(chart);
    if (same) {
      same.root.replaceWith(made);
      same.end();
    } else root.append(made);
    charts[index] = chart;
    chart.load(shownTime());
  }
  for (const chart of charts.splice(state.charts.length)) chart.end();
}

function wire(chart) {
  const { root } = chart;
  const index = () => charts.indexOf(chart);
  const altered = (change_) => {
    const wanted = state.charts.map((each) => ({ ...each, signals: [...each.signals] }));
    change_(wanted, index());
    change({ charts: wanted });
  };
  root.querySelector(".close").addEventListener("click", () => {
    const place = index();
    charts.splice(place, 1)[0].end();
    change({ charts: state.charts.filter((_, other) => other !== place) });
  });
  root.querySelector(".mode").addEventListener("change", (event) =>
    altered((wanted, place) => { wanted[place].mode = event.target.value; }));
  root.querySelector(".export").addEventListener("change", (event) => {
    save(chart, event.target.value);
    event.target.value = "";
  });
  root.querySelector(".legend").addEventListener("click", (event) => {
    const name = event.target.dataset.remove;
    if (!name) return;
    altered((wanted, place) => {
      wanted[place].signals = wanted[place].signals.filter((each) => each !== name);
      if (!wanted[place].signals.length) {
        charts.splice(place, 1)[0].end();
        wanted.splice(place, 1);
      }
    });
  });
  chart.plot.addEventListener("wheel", (event) => {
    if (!chart.isTime || !chart.drawn) return;
    event.preventDefault();
    const { from, to } = shownTime();
    const share = (event.clientX - chart.drawn.over.getBoundingClientRect().left) / chart.drawn.over.clientWidth;
    const factor = event.deltaY > 0 ? 1.25 : 0.8;
    const at = from + (to - from) * Math.max(0, Math.min(1, share));
    setTime(at - (at - from) * factor, at + (to - at) * factor, { later: true });
  }, { passive: false });
  chart.plot.addEventListener("dblclick", back);
  root.addEventListener("dragover", (event) => {
    event.preventDefault();
    event.stopPropagation();
    event.dataTransfer.dropEffect = "copy";
    root.classList.add("drop");
  });
  root.addEventListener("dragleave", () => root.classList.remove("drop"));
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    event.stopPropagation();
    root.classList.remove("drop");
    open(event.dataTransfer.getData("text/plain"), index());
  });
}

function save(chart, form) {
  if (!form) return;
  const link = document.createElement("a");
  const name = chart.wanted.signals[0].replaceAll(/[^A-Za-z0-9_-]+/g, "_");
  if (form === "png") link.href = chart.picture();
  else link.href = api.address("data", { signal: chart.wanted.signals, ...api.span(shownTime()), format: form, download: "1" });
  link.download = `${name}.${form}`;
  link.click();
}

// --- time

function setTime(from, to, { later = false } = {}) {
  if (!(to - from >= 1)) return;
  const old = shownTime();
  if (!later) before.push({ live: state.live, length: state.length, ...old });
  change({ live: false, from, to, length: to - from }, { later });
}
const zoom = (from, to) => setTime(from, to);

function shift(share) {
  const { from, to } = shownTime();
  const move = (to - from) * share;
  setTime(from + move, to + move);
}

function back() {
  const last = before.pop();
  if (last) change(last.live ? { live: true, length: last.length } : { live: false, ...last });
}

function follow(on) {
  if (on) change({ live: true });
  else {
    const { from, to } = shownTime();
    change({ live: false, from, to });
  }
}

function timeInputs() {
  const { from, to } = shownTime();
  for (const [id, at] of [["from", from], ["to", to]]) {
    if (document.activeElement !== by(id)) by(id).value = inputText(at);
  }
  const preset = [...by("preset").options].find((option) => Number(option.value) * 1000 === Math.round(state.length));
  by("preset").value = preset ? preset.value : "";
  by("live").ariaPressed = String(state.live);
  by("back").disabled = !before.length;
}

// --- live

function connect() {
  stopLive?.();
  stopLive = null;
  const names = [...new Set(state.charts.flatMap((chart) => chart.signals))];
  if (!state.live || state.view !== "trends" || !names.length) return;
  stopLive = api.live(names, Date.now() - 5000, (values) => {
    const time = shownTime();
    for (const chart of charts) {
      // long times come in points that stand for more than what arrives in a second
      if (state.length <= 7200_000) chart.append(values, time);
    }
    timeInputs();
  }, say);
}

let refreshed = 0;
setInterval(() => {
  if (!state.live || state.view !== "trends" || document.hidden) return;
  const pause = Math.max(30_000, state.length / 500);
  if (Date.now() - refreshed > pause) loadAll();
  else if (state.length <= 7200_000) for (const chart of charts) if (chart.drawn) chart.append({}, shownTime());
  timeInputs();
}, 1000);

function loadAll() {
  refreshed = Date.now();
  const time = shownTime();
  return Promise.all(charts.map((chart) => chart.load(time)));
}

// --- what is shown follows the state

let shown = {};
onChange((why) => {
  const asked = JSON.stringify([state.live, state.live ? state.length : [state.from, state.to]]);
  const layout = JSON.stringify(state.charts);
  document.documentElement.dataset.theme = state.theme
    || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.body.classList.toggle("wall", state.wall);
  document.body.classList.toggle("status", state.view === "status");
  by("charts").hidden = state.view !== "trends";
  by("status").hidden = state.view !== "status";
  by("view-trends").ariaPressed = String(state.view === "trends");
  by("view-status").ariaPressed = String(state.view === "status");
  by("zone").textContent = state.utc ? "UTC" : "Local";
  timeInputs();
  if (layout !== shown.layout) build();
  if (asked !== shown.asked && shown.asked !== undefined) {
    clearTimeout(reload);
    if (why.later) {
      const time = shownTime();
      for (const chart of charts) if (chart.drawn && chart.isTime) { chart.time = time; chart.draw(); }
      reload = setTimeout(loadAll, 150);
    } else loadAll();
  }
  const look = JSON.stringify([document.documentElement.dataset.theme, state.utc, state.wall]);
  if (look !== shown.look && shown.look !== undefined) {
    requestAnimationFrame(() => charts.forEach((chart) => { chart.shape = ""; if (chart.time) chart.draw(); }));
  }
  const streams = JSON.stringify([state.live, state.view, layout]);
  if (streams !== shown.streams) connect();
  if (state.view !== shown.view) watchStatus();
  shown = { asked, layout, look, streams, view: state.view };
});

function watchStatus() {
  clearInterval(statusClock);
  if (state.view !== "status") return;
  const look = () => showStatus(by("status")).catch(failed);
  look();
  statusClock = setInterval(look, 5000);
}

// --- buttons and keys

by("view-trends").addEventListener("click", () => change({ view: "trends" }));
by("view-status").addEventListener("click", () => change({ view: "status" }));
by("earlier").addEventListener("click", () => shift(-0.5));
by("later").addEventListener("click", () => shift(0.5));
by("back").addEventListener("click", back);
by("live").addEventListener("click", () => follow(!state.live));
by("preset").addEventListener("change", (event) => {
  const length = Number(event.target.value) * 1000;
  if (!length) return;
  if (state.live) {
    before.push({ live: true, length: state.length });
    change({ length });
  } else setTime(state.to - length, state.to);
});
for (const id of ["from", "to"]) {
  by(id).addEventListener("change", () => {
    const from = inputTime(by("from").value), to = inputTime(by("to").value);
    if (from < to) setTime(from, to);
    else say("The time must begin before it ends.");
  });
}
by("theme").addEventListener("click", () =>
  change({ theme: document.documentElement.dataset.theme === "dark" ? "light" : "dark" }));
by("zone").addEventListener("click", () => change({ utc: !state.utc }));
by("wall").addEventListener("click", () => change({ wall: true }));
by("share").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied: it shows the same charts and time.", true);
  } catch {
    say(`This page's address is the link: ${location.href}`, true);
  }
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    ArrowLeft: () => shift(-0.25), ArrowRight: () => shift(0.25), Backspace: back, l: () => follow(!state.live),
    "+": () => scale(0.5), "-": () => scale(2), d: () => by("theme").click(), w: () => change({ wall: !state.wall }),
    "/": () => by("search").focus(), Escape: () => change({ wall: false }),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
function scale(factor) {
  const { from, to } = shownTime(), middle = (from + to) / 2, half = ((to - from) / 2) * factor;
  setTime(middle - half, middle + half);
}
by("charts").addEventListener("dragover", (event) => {
  event.preventDefault();
  by("charts").classList.add("drop");
});
by("charts").addEventListener("dragleave", () => by("charts").classList.remove("drop"));
by("charts").addEventListener("drop", (event) => {
  event.preventDefault();
  by("charts").classList.remove("drop");
  open(event.dataTransfer.getData("text/plain"));
});
addEventListener("hashchange", begin);

async function begin() {
  read();
  try {
    await learn([...new Set(state.charts.flatMap((chart) => chart.signals))]);
  } catch (error) {
    failed(error);
    state.charts = [];
  }
  change({});
}

search(by("search"), by("found"), by("count"), {
  chosen: (name, shift_) => open(name, shift_ ? state.charts.length - 1 : null),
  failed,
});
begin();
