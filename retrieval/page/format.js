// Formats numbers and times for display.

import { parts } from "./zones.js";

const two = (number) => String(number).padStart(2, "0");

export function timeText(milliseconds, fine = false) {
  const [year, month, day, hour, minute, second, below] = parts(milliseconds);
  const text = `${year}-${two(month)}-${two(day)} ${two(hour)}:${two(minute)}:${two(second)}`;
  return fine ? `${text}.${String(below).padStart(3, "0")}` : text;
}

// Marks on an axis of time, every `step` seconds; the first mark and the first of each day show the date.
export function timeTicks(ticks, step) {
  let day = "";
  return ticks.map((tick) => {
    const text = timeText(tick * 1000, step < 1);
    const date = text.slice(0, 10), clock = step < 1 ? text.slice(14) : step < 60 ? text.slice(11) : text.slice(11, 16);
    if (step >= 86400) return step >= 28 * 86400 ? date.slice(0, 7) : date;
    const shown = date === day ? clock : `${clock}\n${date}`;
    day = date;
    return shown;
  });
}


export function valueText(value, type) {
  if (value === null || value === undefined) return "no reading";
  if (type === "bit") return value === true || value === 1 ? "on" : value === false || value === 0 ? "off" : "changing";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return String(value);
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(4) : String(Number(value.toPrecision(6)));
}

export function ageText(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return "never";
  if (seconds < 0) return "0 s";
  for (const [length, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= 2 * length) return `${Math.floor(seconds / length)} ${unit}`;
  }
  return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
}

export function sizeText(bytes) {
  if (bytes === null || bytes === undefined) return "";
  const power = Math.min(5, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${["B", "kB", "MB", "GB", "TB", "PB"][power]}`;
}

// A difference of times, to the millisecond.
export function durationText(milliseconds) {
  const sign = milliseconds < 0 ? "−" : "";
  let left = Math.round(Math.abs(milliseconds));
  const parts = [];
  for (const [length, unit] of [[86400_000, "d"], [3600_000, "h"], [60_000, "min"]]) {
    if (left >= length) parts.push(`${Math.floor(left / length)} ${unit}`);
    left %= length;
  }
  if (left || !parts.length) parts.push(`${left / 1000} s`);
  return sign + parts.join(" ");
}

// A long name may break after its parts.
export function breakable(name) {
  return name.split(/(?<=[/:._-])/).flatMap((part) => [part, document.createElement("wbr")]);
}
