// Marks over the lines: limits, events of the readings, and notes of people.

import { colour } from "./axes.js";
import { timeText } from "../format.js";

// Kinds of events by their severity; others have no colour.
const COLOURS = { gap: "bad", refused: "bad", thinned: "bad", damaged: "bad", disconnected: "bad", unread: "bad", late: "warn",
  clock: "warn", unfit: "warn", alarm: "warn", mark: "accent", capture: "accent" };
const MISSING = ["gap", "thinned", "damaged", "disconnected"];
const STRIP = 5; // pixels

// The events that say since and until when readings of a table are missing.
export const missing = (events, table) =>
  events.filter((event) => event.table_name === table && MISSING.includes(event.kind) && event.to > event.from);

export function limitLines(plot, axes) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const { own, scale } of axes) {
    for (const each of own.filter((one) => one.alarm_limits)) alarmBands(plot, scale, each);
  }
  ctx.setLineDash([6, 5]);
  ctx.lineWidth = devicePixelRatio;
  ctx.strokeStyle = colour("bad");
  ctx.globalAlpha = 0.7;
  for (const { own, scale } of axes) {
    for (const limit of own.flatMap((each) => each.limits ?? []).filter((each) => each !== null)) {
      const y = plot.valToPos(limit, scale, true);
      if (!Number.isFinite(y)) continue; // values at or below 0 on a logarithmic axis
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
    }
  }
  ctx.restore();
}

// The values outside the limits and outside the wider ones, as bands; null is no limit. On an axis that has no such value
// (at or below 0 of a logarithmic one) a band ends at the edge.
function alarmBands(plot, scale, { limits, alarm_limits: [lolo, hihi] }) {
  const { ctx, bbox } = plot, low = limits?.[0] ?? lolo, high = limits?.[1] ?? hihi;
  const bottom = bbox.top + bbox.height, { min, max } = plot.scales[scale];
  const isDown = plot.valToPos(max, scale, true) > plot.valToPos(min, scale, true); // an axis upside down
  const yOf = (value, edge) => {
    const y = value === null ? NaN : plot.valToPos(value, scale, true);
    return Number.isFinite(y) ? y : edge;
  };
  const [under, over] = isDown ? [bbox.top, bottom] : [bottom, bbox.top];
  const bands = [["bad", under, yOf(lolo, under)], ["warn", yOf(lolo, under), yOf(low, under)],
    ["warn", yOf(high, over), yOf(hihi, over)], ["bad", yOf(hihi, over), over]];
  ctx.globalAlpha = 0.13;
  for (const [kind, from, to] of bands) {
    ctx.fillStyle = colour(kind);
    ctx.fillRect(bbox.left, Math.min(from, to), bbox.width, Math.abs(from - to));
  }
  ctx.globalAlpha = 1;
}

// A mark above the lines for each event, as long as the event; the background of missing rows is shaded.
export function eventMarks(plot, events) {
  const { ctx, bbox } = plot, ratio = devicePixelRatio;
  const right = bbox.left + bbox.width;
  const xOf = (at) => Math.min(right, Math.max(bbox.left, plot.valToPos(at / 1000, "x", true)));
  ctx.save();
  for (const event of events) {
    const x = xOf(event.from), width = Math.max(2 * ratio, xOf(event.to) - x);
    ctx.fillStyle = colour(COLOURS[event.kind] ?? "quiet");
    ctx.globalAlpha = 1;
    ctx.fillRect(x, bbox.top - STRIP * ratio, width, STRIP * ratio);
    // a note of a person, or the event of a capture: a thin line, or the span
    if (["mark", "capture"].includes(event.kind)) ctx.fillRect(x, bbox.top, ratio, bbox.height);
    if (["mark", ...MISSING].includes(event.kind) && event.to > event.from) {
      ctx.globalAlpha = 0.08;
      ctx.fillRect(x, bbox.top, width, bbox.height);
    }
  }
  ctx.restore();
}

// The same as text: a line with their number, which can be opened.
export function eventList(events) {
  if (!events.length) return [];
  const counts = new Map();
  for (const { kind } of events) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const summary = document.createElement("summary");
  summary.append("Meanwhile: ", [...counts].map(([kind, n]) => `${n} ${kind}`).join(", "));
  const list = Object.assign(document.createElement("ul"), { tabIndex: 0 });
  list.append(...events.map((event) => {
    const item = document.createElement("li");
    const end = event.to > event.from ? ` – ${timeText(event.to)}` : "";
    const rows = event.rows === null ? "" : `, ${event.rows} row${event.rows === 1 ? "" : "s"}`;
    const kind = Object.assign(document.createElement("b"), { textContent: event.kind });
    kind.className = COLOURS[event.kind] ?? "";
    item.append(`${timeText(event.from)}${end} ${event.table_name} `, kind, `${rows}: ${event.message}`);
    if (event.mark) {
      const edit = Object.assign(document.createElement("button"), { type: "button", textContent: "Correct" });
      edit.dataset.mark = event.mark;
      item.append(" ", edit);
    }
    return item;
  }));
  return [summary, list];
}
