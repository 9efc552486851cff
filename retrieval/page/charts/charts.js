// The charts of the page: made from the state, and kept while it is unchanged.

import * as api from "../api.js";
import { axesWidth, axisKey } from "./axes.js";
import { Chart } from "./chart.js";
import { durationText, timeText } from "../format.js";
import { gestures } from "./gestures.js";
import { menu } from "./menu.js";
import { note } from "../note.js";
import { failed, say, worked } from "../message.js";
import { isState, isWaveform } from "./series.js";
import { change, MOST, setAxis, setSignal, shownTime, state, tidy } from "../state.js";
import { setTime } from "../time.js";
import { instantOf } from "../zones.js";

const root = document.getElementById("charts");
const empty = document.getElementById("empty");
const template = document.getElementById("chart");
const known = new Map();
const charts = [];
let begun; // the time at which the signal of a chart that is not drawn yet was chosen

export const remember = (signal) => known.set(signal.signal, signal);

export async function learn(names) {
  for (const [name, signal] of await api.describe(names.filter((each) => !known.has(each)))) known.set(name, signal);
}

// Like learn, for a link, which may name signals that no longer exist: these are returned.
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

// Opens a chart of a signal, or adds the signal to the chart at index `onto`.
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
  change({ view: "trends", charts: wanted }, { step: true });
  begun = undefined;
}

// Opens all signals of a capture, a chart for each unit, over its whole time.
export async function openCapture(number) {
  try {
    const event = await api.capture(number);
    const drawn = event.signals.filter((signal) => !isWaveform(signal));
    await learn(drawn.map(({ signal }) => signal));
    const units = [...Map.groupBy(drawn, (signal) => isState(signal) || signal.unit).values()].map((own) => own.map(({ signal }) => signal));
    const shown = units.slice(0, MOST.charts).map((names) => names.slice(0, MOST.signals));
    const left = event.signals.length - shown.flat().length;
    say(left ? `${left} of its signals are not drawn: waveforms, or more than the page shows. Save or export the capture.` : "");
    change({ view: "trends", live: false, from: Date.parse(event.begins), to: Date.parse(event.ends), while: "",
      length: Date.parse(event.ends) - Date.parse(event.begins),
      charts: shown.map((signals) => ({ mode: `capture-${number}`, signals })) }, { step: true });
  } catch (error) {
    failed(error);
  }
}

const copy = () => state.charts.map((chart) => ({ ...chart, signals: [...chart.signals] }));

export function build() {
  empty.hidden = state.charts.length > 0;
  for (const [index, wanted] of state.charts.entries()) {
    const same = charts[index];
    if (same?.isAlike(wanted)) {
      if (JSON.stringify(same.wanted) === JSON.stringify(wanted)) continue;
      same.wanted = wanted;
      if (same.view.isOutdated) same.load(shownTime());
      else same.draw();
      continue;
    }
    const made = document.importNode(template.content, true).firstElementChild;
    if (same) {
      same.root.replaceWith(made);
      same.end();
    } else root.append(made);
    const chart = new Chart(made, wanted, known, { failed, worked, zoom: setTime, alter, drawn });
    charts[index] = chart;
    wire(chart);
    chart.begun = begun;
    chart.load(shownTime());
  }
  for (const chart of charts.splice(state.charts.length)) chart.end();
  align();
}

// Charts above each other have one axis of time: the widest axes left and right are the room of all.
function align() {
  const shown = charts.filter((chart) => chart.drawn && chart.view.isTime);
  const rooms = shown.map(({ drawn }) => [3, 1].map((side) => {
    const width = axesWidth(drawn, side);
    return width ? width + (side === 1 ? 8 : 0) : 36;
  }));
  const gutters = [0, 1].map((side) => Math.max(...rooms.map((room) => room[side])));
  for (const chart of shown) {
    if (String(chart.gutters) === String(gutters)) continue;
    chart.gutters = gutters;
    chart.drawn.redraw(false, true);
    chart.cursors.place();
  }
}

// After a drawing of one chart, or of another size.
function drawn(chart) {
  if (chart) press(chart);
  align();
}

export function loadAll(only = () => true) {
  const time = shownTime();
  return Promise.all(charts.filter(only).map((chart) => chart.load(time)));
}

export function appendAll(values, isFollowed) {
  const time = shownTime();
  for (const chart of charts) chart.append(values, time, isFollowed);
}

// Draws the present data again: for another time, until its data have arrived, or with another look.
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

// Changes the settings of a chart. `why` as in change; by default a step that Back undoes.
function alter(chart, work, why = { step: true }) {
  const wanted = copy(), index = charts.indexOf(chart);
  work(wanted[index]);
  wanted[index] = tidy(wanted[index]);
  change({ charts: wanted }, why);
}

// Each axis has its button for a logarithmic one.
function press(chart) {
  chart.root.querySelector(".stats").ariaPressed = String(Boolean(chart.wanted.stats));
  const logs = chart.root.querySelector(".logs"), axes = chart.view.axes.filter(({ own }) => own.length);
  const keys = JSON.stringify(axes.map(({ key }) => key));
  if (logs.dataset.keys !== keys) {
    logs.dataset.keys = keys;
    logs.replaceChildren(...axes.map(({ key }) => Object.assign(document.createElement("button"), { type: "button",
      title: "Logarithmic axis", value: key, textContent: axes.length > 1 ? `Log ${key || "(no unit)"}` : "Log" })));
  }
  for (const [index, { log }] of axes.entries()) logs.children[index].ariaPressed = String(Boolean(log));
}

// A chart of a link that has one choice for all axes, as version 1.0 wrote it.
export function withAxes({ log, ...chart }) {
  if (log) for (const name of chart.signals) setAxis(chart, axisKey(known.get(name), chart), { log: true });
  return chart;
}

function wire(chart) {
  const part = (name) => chart.root.querySelector(name);
  const index = () => charts.indexOf(chart);
  const close = () => {
    const position = index();
    charts.splice(position, 1)[0].end();
    align();
    change({ charts: state.charts.filter((_, other) => other !== position) }, { step: true });
    document.getElementById("charts").focus();
  };
  part(".close").addEventListener("click", close);
  modes(chart, (mode) => alter(chart, (wanted) => { wanted.mode = mode; }));
  part(".stats").hidden = !chart.view.hasStatistics;
  part(".stats").addEventListener("click", () => alter(chart, (wanted) => { wanted.stats = !wanted.stats; }));
  part(".write").hidden = !chart.view.isTime;
  part(".write").addEventListener("click", () => chart.time && note(chart));
  part(".happened").addEventListener("click", ({ target }) => {
    const mark = chart.view.events?.find((each) => each.mark && String(each.mark) === target.dataset.mark);
    if (mark) note(chart, mark);
  });
  part(".logs").addEventListener("click", ({ target }) => {
    if (target.value !== undefined) alter(chart, (wanted) => setAxis(wanted, target.value, { log: !wanted.axes?.[target.value]?.log }));
  });
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
  const remove = (name) => {
    if (chart.wanted.signals.length === 1) close();
    else alter(chart, (wanted) => { wanted.signals = wanted.signals.filter((each) => each !== name); });
  };
  const pressed = (event, kind) => event.target.closest(`.${kind}`) && event.target.closest("li").dataset.signal;
  part(".legend").addEventListener("click", (event) => {
    const shown = pressed(event, "toggle"), looked = pressed(event, "more"), removed = pressed(event, "remove");
    if (shown) alter(chart, (wanted) => setSignal(wanted, shown, { hide: !chart.isHidden(shown) }));
    if (looked) menu(chart, looked, event.target, (work) => alter(chart, work));
    if (removed) remove(removed);
  });
  part(".legend").addEventListener("dblclick", (event) => {
    const name = pressed(event, "toggle");
    if (!name) return;
    const isOnly = chart.wanted.signals.every((each) => each === name || chart.isHidden(each));
    alter(chart, (wanted) => {
      for (const each of wanted.signals) setSignal(wanted, each, { hide: !isOnly && each !== name });
    });
  });
  gestures(chart);
  droppable(chart.root, (name) => open(name, index()));
}

// The contents of the chart; the time of the comparison may be any.
function modes(chart, chosen) {
  const list = chart.root.querySelector(".mode"), entry = chart.root.querySelector(".beside");
  const { mode } = chart.wanted;
  list.hidden = chart.isOfWaveforms;
  if (mode.startsWith("compare-") && ![...list.options].some((option) => option.value === mode)) {
    const words = `Compare with ${durationText(Number(mode.slice(8)) * 1000)} before`;
    list.add(new Option(words, mode), list.querySelector("[value=other]"));
  }
  if (mode.startsWith("capture-")) list.add(new Option(`Capture ${mode.slice(8)}`, mode), 0);
  list.value = mode;
  list.addEventListener("change", () => {
    entry.hidden = list.value !== "other";
    if (entry.hidden) chosen(list.value);
    else {
      entry.value = timeText(shownTime().from);
      entry.focus();
    }
  });
  entry.addEventListener("change", () => {
    const offset = (shownTime().from - instantOf(entry.value)) / 1000;
    if (offset > 0) chosen(`compare-${Math.round(offset)}`);
    else say(Number.isNaN(offset) ? "Write a time as 2026-11-28 14:05:00." : "The compared time must begin before the one shown.");
  });
}

// The answer is read before it becomes a file, so that a refusal of the server is shown.
async function save(chart, choice) {
  if (!choice) return;
  const link = document.createElement("a");
  link.download = `${chart.fileName()}.${choice.split("-")[0]}`;
  try {
    if (choice === "png") link.href = chart.picture();
    else {
      say("Saving…", true);
      link.href = URL.createObjectURL(await api.file(chart.address(choice)));
    }
  } catch (error) {
    failed(error);
    return;
  }
  link.click();
  if (link.href.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
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
