// The page: its display follows the state; buttons and keys change the state.

import * as api from "./api.js";
import { troubles } from "./charts/captured.js";
import { appendAll, build, drawAll, learnThere, loadAll, moveCursors, open, openCapture, remember, withAxes } from "./charts/charts.js";
import { timeText } from "./format.js";
import { choice, list } from "./lists.js";
import { failed, say, worked } from "./message.js";
import { search } from "./search.js";
import { address, change, onChange, read, shownTime, state } from "./state.js";
import { showStatus } from "./status.js";
import { back, follow, scale, shift, showTime } from "./time.js";
import { tree } from "./tree.js";
import { openView, readViews, stateOf } from "./views.js";
import { facility, isZone } from "./zones.js";

const by = (id) => document.getElementById(id);
const FOLLOWED = 7200_000; // the points of a longer time represent more than the samples of a second
let stopLive = null, statusClock = null, reload = null, refreshed = 0;

function connect() {
  stopLive?.();
  stopLive = null;
  worked("live");
  const names = [...new Set(state.charts.flatMap((chart) => chart.signals))];
  // with a condition the trends are fetched again instead
  if (!state.live || state.while || state.view !== "trends" || !names.length) return;
  let isLost = false;
  stopLive = api.live(names, Date.now() - 5000, {
    take: (values) => {
      appendAll(values, state.length <= FOLLOWED);
      showTime();
    },
    refused: say,
    lost: () => {
      isLost = true;
      failed({ message: "The server does not answer: nothing new is shown until it does." }, "live");
    },
    there: () => {
      worked("live");
      if (isLost) refresh(); // samples that have arrived meanwhile
      isLost = false;
    },
  });
}

function refresh() {
  refreshed = Date.now();
  return loadAll();
}

setInterval(() => {
  if (!state.live || state.view !== "trends" || document.hidden) return;
  if (Date.now() - refreshed > Math.max(30_000, state.length / 500)) refresh();
  else if (state.length <= FOLLOWED) appendAll({}, true);
  showTime();
}, 1000);

function watchStatus() {
  clearInterval(statusClock);
  worked("status");
  if (state.view !== "status") return;
  const look = () => showStatus(by("status")).then(() => worked("status"), (error) => failed(error, "status"));
  look();
  statusClock = setInterval(look, 5000);
}

// --- the display follows the state

const dark = matchMedia("(prefers-color-scheme: dark)");
let shown = {};
onChange((why) => {
  const { live, length, from, to, view } = state;
  const now = {
    view,
    time: JSON.stringify([state.while, state.gap, ...(live ? [live, length] : [live, from, to])]),
    layout: JSON.stringify(state.charts),
    cursors: JSON.stringify([state.a, state.b]),
    theme: state.theme || (dark.matches ? "dark" : "light"),
  };
  now.zone = JSON.stringify([state.zone, facility.zone]);
  now.look = JSON.stringify([now.theme, now.zone, state.wall]);
  now.streams = JSON.stringify([live, view, now.layout, state.while]);
  const was = shown, begun = was.view !== undefined;
  shown = now;

  document.documentElement.dataset.theme = now.theme;
  document.body.classList.toggle("wall", state.wall);
  document.body.classList.toggle("status", view === "status");
  by("charts").hidden = view !== "trends";
  by("status").hidden = view !== "status";
  by("view-trends").ariaPressed = String(view === "trends");
  by("view-status").ariaPressed = String(view === "status");
  by("cursors").ariaPressed = String(state.a !== null || state.b !== null);
  for (const name of ["while", "gap"]) by(name).value = state[name];
  by("gap").hidden = !state.while;
  if (now.zone !== was.zone) showZone();
  showTime();
  if (now.layout !== was.layout) build();
  if (begun && now.time !== was.time) {
    clearTimeout(reload);
    if (why.later) {
      drawAll(shownTime());
      reload = setTimeout(refresh, 150);
    } else refresh();
  }
  if (begun && now.look !== was.look) requestAnimationFrame(() => drawAll());
  if (begun && now.cursors !== was.cursors) moveCursors();
  if (now.streams !== was.streams) connect();
  if (now.view !== was.view) watchStatus();
});
dark.addEventListener("change", () => change({}));

// --- buttons and keys

function toggleCursors() {
  const { from, to } = shownTime(), third = (to - from) / 3;
  const off = state.a !== null || state.b !== null;
  change(off ? { a: null, b: null } : { a: from + third, b: to - third });
}

// The charts alone, on the whole screen if the browser allows it.
function hang(wall) {
  change({ wall });
  if (wall) document.documentElement.requestFullscreen?.().catch(() => {});
  else if (document.fullscreenElement) document.exitFullscreen();
}
document.addEventListener("fullscreenchange", () => {
  if (!document.fullscreenElement && state.wall) change({ wall: false });
});

by("view-trends").addEventListener("click", () => change({ view: "trends" }, { step: true }));
by("view-status").addEventListener("click", () => change({ view: "status" }, { step: true }));
by("theme").addEventListener("click", () => change({ theme: shown.theme === "dark" ? "light" : "dark" }));
by("rest").addEventListener("click", () => {
  const isOpen = document.body.classList.toggle("rest");
  by("rest").ariaExpanded = String(isOpen);
});
by("wall").addEventListener("click", () => hang(true));
by("cursors").addEventListener("click", toggleCursors);
by("share").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(address());
    say("The link is copied: it shows the same charts and time.", true);
  } catch {
    say(`This page's address is the link: ${address()}`, true);
  }
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, .scroll, [popover]") || event.ctrlKey || event.metaKey || event.altKey) return;
  const act = {
    ArrowLeft: () => shift(-0.25), ArrowRight: () => shift(0.25), Backspace: back, l: () => follow(!state.live),
    "+": () => scale(0.5), "-": () => scale(2), d: () => by("theme").click(), w: () => hang(!state.wall),
    c: toggleCursors, "/": () => by("search").focus(), Escape: () => hang(false),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

for (const name of ["while", "gap"]) {
  by(name).addEventListener("change", () => change({ [name]: by(name).value.trim() }, { step: true }));
}

// --- the zone of times

const zone = by("zone"), zoneEntry = by("zone-name");
zone.options[0].textContent = `Local (${Intl.DateTimeFormat().resolvedOptions().timeZone})`;

function showZone() {
  const isThere = [...zone.options].some((option) => option.value === state.zone);
  if (!isThere) zone.add(new Option(state.zone, state.zone), zone.querySelector("[value=other]"));
  zone.value = state.zone;
  zone.querySelector("[value=facility]").textContent = facility.zone ? `Facility (${facility.zone})` : "Facility";
  zoneEntry.hidden = true;
}

zone.addEventListener("change", () => {
  if (zone.value !== "other") {
    change({ zone: zone.value });
    return;
  }
  if (!by("zones").children.length) by("zones").append(...Intl.supportedValuesOf("timeZone").map((name) => new Option(name)));
  zoneEntry.hidden = false;
  zoneEntry.value = "";
  zoneEntry.focus();
});
zoneEntry.addEventListener("change", () => {
  const name = zoneEntry.value.trim();
  if (isZone(name)) {
    change({ zone: name });
    showZone();
  } else say(`There is no time zone ${name}: write it as Europe/Berlin.`);
});

// --- from the address

// When the browser goes back or forward, the zone and the theme stay.
addEventListener("hashchange", () => begin(history.state === null));

let isBegun = false; // the descriptions of the signals have arrived
async function begin(look = true) {
  try {
    const wanted = await stateOf(location.hash);
    if (wanted !== location.hash) history.replaceState(history.state, "", wanted);
  } catch (error) {
    failed(error);
  }
  const left = read(look);
  if (left) say(left);
  if (!isZone(state.zone === "facility" || !state.zone ? "UTC" : state.zone)) {
    say(`There is no time zone ${state.zone}.`);
    state.zone = "";
  }
  try {
    const gone = await learnThere([...new Set(state.charts.flatMap((chart) => chart.signals))]);
    for (const chart of state.charts) chart.signals = chart.signals.filter((name) => !gone.includes(name));
    state.charts = state.charts.filter((chart) => chart.signals.length).map(withAxes);
    if (gone.length) say(`There is no signal ${gone.join(", ")}. Find signals on the left.`);
  } catch (error) {
    failed(error);
    state.charts = [];
  }
  isBegun = true;
  change({});
}

const chosen = (found, more) => {
  if (found.owner !== undefined) {
    openView(found);
    return;
  }
  remember(found);
  open(found.signal, more ? state.charts.length - 1 : null);
};
const newestCaptures = () => api.captures().then((found) => found.reverse());
const captureItem = (event) => choice(event.name, timeText(Date.parse(event.time)),
  [event.note, ...troubles(event)].filter(Boolean).join("; "), () => openCapture(event.capture));
const viewItem = (view) => choice(view.name, view.owner, view.description, () => openView(view));
for (const [name, show] of [["search", (calls) => search(by("search"), by("found"), by("count"), calls)],
  ["tree", (calls) => tree(by("tree"), calls)],
  ["views", (calls) => list(by("views"), readViews, viewItem, calls)],
  ["captures", (calls) => list(by("captures"), newestCaptures, captureItem, calls)]]) {
  show({ chosen, failed: (error) => failed(error, name), worked: () => worked(name) });
}
begin();
api.me().then(({ timezone }) => {
  facility.zone = timezone;
  if (isBegun) change({});
}, (error) => failed(error, "me"));
