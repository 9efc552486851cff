// The charts of the page: made from the state, kept while it is the same.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { inputText, inputTime, durationText } from "./format.js";
import { gestures } from "./gestures.js";
import { failed, say, worked } from "./message.js";
import { isWaveform } from "./series.js";
import { change, shownTime, state } from "./state.js";
import { setTime } from "./time.js";

const root = document.getElementById("charts");
const empty = document.getElementById("empty");
const template = document.getElementById("chart");
const known = new Map();
const charts = [];
let begun; // when a signal was chosen whose chart is not there yet

export const know = (signal) => known.set(signal.signal, signal);

export async function learn(names) {
  for (const [name, signal] of await api.describe(names.filter((each) => !known.has(each)))) known.set(name, signal);
}

// As learn, but of a link, which may name signals that are no more: these are returned.
export async function learnThere(names) {
  try {
    await learn(names);
    return [];
  } catch (error) {
    if (error.status !== 404) throw error;
    if (names.length === 1) return names;
  }
  return (await Promise.all(names.map((name) => learnThere([name])))).flat();
}

// Opens a chart of a signal, or adds it to the chart at the place `onto`.
export async function open(name, onto = null) {
  begun = performance.now();
  try {
    await learn([name]);
  } catch (error) {
    begun = undefined;
    failed(error);
    return;
  }
  say("");
  const wanted = copy();
  const there = onto === null ? undefined : wanted[onto];
  // a waveform and a line have no axis in common
  const fits = there?.signals.every((each) => isWaveform(known.get(each)) === isWaveform(known.get(name)));
  if (!fits) wanted.push({ mode: "trend", signals: [name] });
  else if (!there.signals.includes(name)) there.signals.push(name);
  change({ view: "trends", charts: wanted });
  begun = undefined;
}

const copy = () => state.charts.map((chart) => ({ ...chart, signals: [...chart.signals] }));

export function build() {
  empty.hidden = state.charts.length > 0;
  for (const [index, wanted] of state.charts.entries()) {
    const same = charts[index];
    if (same && JSON.stringify(same.wanted) === JSON.stringify(wanted)) continue;
    const made = document.importNode(template.content, true).firstElementChild;
    if (same) {
      same.root.replaceWith(made);
      same.end();
    } else root.append(made);
    const chart = new Chart(made, wanted, known, { failed, worked, zoom: setTime });
    charts[index] = chart;
    wire(chart);
    chart.begun = begun;
    chart.load(shownTime());
  }
  for (const chart of charts.splice(state.charts.length)) chart.end();
}

export function loadAll(only = () => true) {
  const time = shownTime();
  return Promise.all(charts.filter(only).map((chart) => chart.load(time)));
}

export function appendAll(values) {
  const time = shownTime();
  for (const chart of charts) chart.append(values, time);
}

// Draws what is there again: for another time, until its data have come, or another look.
export function drawAll(time) {
  for (const chart of charts) {
    if (time && chart.time && chart.view.isTime) chart.time = time;
    chart.draw();
  }
}

let moved;
export function moveCursors() {
  for (const chart of charts) if (chart.time) chart.cursors.place();
  moved ??= setTimeout(() => {
    moved = undefined;
    loadAll((chart) => chart.view.followsCursors);
  }, 60);
}

function wire(chart) {
  const part = (name) => chart.root.querySelector(name);
  const index = () => charts.indexOf(chart);
  const alter = (work) => {
    const wanted = copy();
    work(wanted[index()]);
    change({ charts: wanted });
  };
  const close = () => {
    const place = index();
    charts.splice(place, 1)[0].end();
    change({ charts: state.charts.filter((_, other) => other !== place) });
    document.getElementById("charts").focus();
  };
  part(".close").addEventListener("click", close);
  modes(chart, (mode) => alter((wanted) => { wanted.mode = mode; }));
  const log = part(".log");
  log.hidden = !chart.view.canBeLog;
  log.ariaPressed = String(Boolean(chart.wanted.log));
  log.addEventListener("click", () => alter((wanted) => {
    if (wanted.log) delete wanted.log;
    else wanted.log = true;
  }));
  const scalars = part(".scalars");
  scalars.hidden = !chart.isOfWaveforms;
  scalars.addEventListener("change", async () => {
    const names = chart.wanted.signals.map((name) => `${name}.${scalars.value}`);
    scalars.value = "";
    await open(names[0]);
    for (const name of names.slice(1)) await open(name, state.charts.length - 1);
  });
  part(".export").addEventListener("change", (event) => {
    save(chart, event.target.value);
    event.target.value = "";
  });
  part(".legend").addEventListener("click", (event) => {
    const name = event.target.dataset.remove;
    if (!name) return;
    if (chart.wanted.signals.length === 1) close();
    else alter((wanted) => { wanted.signals = wanted.signals.filter((each) => each !== name); });
  });
  gestures(chart);
  droppable(chart.root, (name) => open(name, index()));
}

// What the chart shows; the time beside it may be any.
function modes(chart, chosen) {
  const list = chart.root.querySelector(".mode"), entry = chart.root.querySelector(".beside");
  const { mode } = chart.wanted;
  list.hidden = chart.isOfWaveforms;
  if (mode.startsWith("compare-") && ![...list.options].some((option) => option.value === mode)) {
    const words = `Beside ${durationText(Number(mode.slice(8)) * 1000)} before`;
    list.add(new Option(words, mode), list.querySelector("[value=other]"));
  }
  list.value = mode;
  list.addEventListener("change", () => {
    entry.hidden = list.value !== "other";
    if (entry.hidden) chosen(list.value);
    else {
      entry.value = inputText(shownTime().from);
      entry.focus();
    }
  });
  entry.addEventListener("change", () => {
    const offset = (shownTime().from - inputTime(entry.value)) / 1000;
    if (offset > 0) chosen(`compare-${Math.round(offset)}`);
    else if (Number.isFinite(offset)) say("The time beside must begin before the one shown.");
  });
}

function save(chart, form) {
  if (!form) return;
  const link = document.createElement("a");
  link.href = form === "png" ? chart.picture() : chart.address(form);
  link.download = `${chart.wanted.signals[0].replaceAll(/[^A-Za-z0-9_-]+/g, "_")}.${form}`;
  link.click();
}

function droppable(element, dropped) {
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    event.stopPropagation();
    event.dataTransfer.dropEffect = "copy";
    element.classList.add("drop");
  });
  element.addEventListener("dragleave", () => element.classList.remove("drop"));
  element.addEventListener("drop", (event) => {
    event.preventDefault();
    event.stopPropagation();
    element.classList.remove("drop");
    dropped(event.dataTransfer.getData("text/plain"));
  });
}
droppable(root, (name) => open(name));
