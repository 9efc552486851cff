// Time zones: this machine's, the facility's, UTC, or any other by its name.

import { state } from "./state.js";

export const facility = { zone: "" }; // of the facility file, after the server has sent it

// The name of the zone shown; undefined: this machine's.
export const zoneName = () => (state.zone === "facility" ? facility.zone || "UTC" : state.zone || undefined);

export function isZone(name) {
  try {
    return Boolean(new Intl.DateTimeFormat("en", { timeZone: name }));
  } catch {
    return false;
  }
}

const formats = new Map();
function formatOf(zone) {
  if (!formats.has(zone)) {
    formats.set(zone, new Intl.DateTimeFormat("en", { timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric",
      day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" }));
  }
  return formats.get(zone);
}

const PARTS = ["year", "month", "day", "hour", "minute", "second"];

// Year, month (from 1), day, hour, minute, second, milliseconds.
export function parts(milliseconds) {
  const date = new Date(milliseconds), zone = zoneName();
  if (zone === undefined) {
    return [date.getFullYear(), date.getMonth() + 1, date.getDate(), date.getHours(), date.getMinutes(),
      date.getSeconds(), date.getMilliseconds()];
  }
  if (zone === "UTC") {
    return [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate(), date.getUTCHours(), date.getUTCMinutes(),
      date.getUTCSeconds(), date.getUTCMilliseconds()];
  }
  const found = Object.fromEntries(formatOf(zone).formatToParts(date).map(({ type, value }) => [type, Number(value)]));
  return [...PARTS.map((name) => found[name]), ((milliseconds % 1000) + 1000) % 1000 | 0];
}

// The instant of a time as 2026-11-28 14:05:00, or with milliseconds, in the zone shown, in milliseconds; NaN for an invalid one.
export function instantOf(text) {
  const zone = zoneName(), [, date, clock] = text.trim().match(/^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?))?$/) ?? [];
  const asUtc = Date.parse(`${date}T${clock ?? "00:00"}Z`);
  // a day that the month does not have
  if (Number.isNaN(asUtc) || new Date(asUtc).getUTCDate() !== Number(date.slice(8))) return NaN;
  if (zone === undefined) return Date.parse(`${date}T${clock ?? "00:00"}`);
  const offset = (at) => {
    const [year, month, ...rest] = parts(at);
    return Date.UTC(year, month - 1, ...rest) - at;
  };
  // the offset at the instant itself, which differs if the clocks have changed in between
  return asUtc - offset(asUtc - offset(asUtc));
}
