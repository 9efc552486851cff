// The displayed state, kept in the page's address, so that a link shows the same and the browser's Back
// undoes a change.

export const MOST = { charts: 24, signals: 500 }; // limits of an address, and of a request

export const state = {
  view: "trends",
  live: true,
  length: 3600_000, // milliseconds
  from: 0,
  to: 0,
  zone: "", // "" is this machine's, "facility", or a name of the IANA database
  theme: "",
  while: "", // a condition: only the times in which it holds are shown
  gap: "", // the longest time for which a value is held in it, as 10s
  wall: false,
  a: null, // cursors: milliseconds; null: no cursor
  b: null,
  // {signals: [names], mode, stats, of, axes}; stats exists if it is on. of: by signal {colour, line, own, hide};
  // axes: by unit, or by signal if it has its own, {min, max, invert, side, log}
  charts: [],
};

const listeners = new Set();
export const onChange = (listener) => listeners.add(listener);

// `why.step`: the browser's Back undoes it. `why.later`: one of many small changes.
export function change(values, why = {}) {
  Object.assign(state, values);
  for (const listener of listeners) listener(why);
  if (why.step) step();
  write();
}

export function shownTime(now = Date.now()) {
  return state.live ? { from: now - state.length, to: now } : { from: state.from, to: state.to };
}

// The next change is a step for the browser's Back, whatever it is.
let isStep = false;
export const step = () => { isStep = true; };

// The number of steps of this page before the one shown.
export const depth = () => history.state?.depth ?? 0;

// A browser limits the changes of the address per second. An address that the user enters meanwhile stays,
// and is read when its event arrives.
let pending, known = location.hash;
function write() {
  pending ??= setTimeout(() => {
    pending = undefined;
    if (location.hash !== known) return;
    const wanted = address();
    if (wanted !== location.href) {
      if (isStep) history.pushState({ depth: depth() + 1 }, "", wanted);
      else history.replaceState({ depth: depth() }, "", wanted);
    }
    isStep = false;
    known = location.hash;
    for (const listener of listeners) listener({});
  }, 100);
}

// Options after a name: flags, and values with =.
const withOptions = (name, options = {}) =>
  [encodeURIComponent(name), ...Object.entries(options).map(([key, value]) =>
    value === true ? key : `${key}=${encodeURIComponent(value)}`)].join(";");

function chartText({ mode, stats, signals, of = {}, axes = {} }) {
  const head = [mode, ...(stats ? ["stats"] : [])].join(":");
  return [encodeURIComponent(head), ...signals.map((name) => withOptions(name, of[name])),
    ...Object.entries(axes).map(([key, options]) => `=${withOptions(key, options)}`)].join(",");
}

// The address of the displayed state.
export function address() {
  const query = new URLSearchParams();
  if (state.view !== "trends") query.set("view", state.view);
  for (const chart of state.charts) query.append("c", chartText(chart));
  if (state.live) query.set("last", state.length / 1000);
  else {
    query.set("from", new Date(state.from).toISOString());
    query.set("to", new Date(state.to).toISOString());
  }
  if (state.zone === "UTC") query.set("utc", "1");
  else if (state.zone) query.set("zone", state.zone);
  if (state.theme) query.set("theme", state.theme);
  for (const name of ["while", "gap"]) if (state[name]) query.set(name, state[name]);
  if (state.wall) query.set("wall", "1");
  // to the microsecond, as a row's time
  for (const name of ["a", "b"]) if (state[name] !== null) query.set(name, (state[name] / 1000).toFixed(6));
  return `${location.origin}${location.pathname}#${query}`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a typed link
  }
}

const TAKEN = {
  colour: (text) => (/^#[0-9a-f]{6}$/i.test(text) ? text : undefined),
  line: (text) => (["straight", "steps", "points"].includes(text) ? text : undefined),
  side: (text) => (["left", "right"].includes(text) ? text : undefined),
  own: () => true, hide: () => true, invert: () => true, log: () => true,
  min: (text) => finite(text), max: (text) => finite(text),
};
const finite = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : undefined);

function optionsOf(text) {
  const [name, ...rest] = text.split(";"), options = {};
  for (const each of rest) {
    const [key, value = ""] = each.split("=");
    const taken = TAKEN[key]?.(decoded(value));
    if (taken !== undefined) options[key] = taken;
  }
  return [decoded(name), options];
}

function chartOf(text) {
  const [first, ...rest] = text.split(","), [mode, ...flags] = decoded(first).split(":");
  const of = {}, axes = {}, signals = [];
  for (const part of rest) {
    const isAxis = part.startsWith("="), [name, options] = optionsOf(isAxis ? part.slice(1) : part);
    const has = Object.keys(options).length > 0;
    if (isAxis) {
      if (has) axes[name] = options;
    } else if (!signals.includes(name)) {
      signals.push(name);
      if (has) of[name] = options;
    }
  }
  // `log` of an older link is of all axes, whose units are not known yet
  return { ...tidy({ mode, signals, stats: flags.includes("stats"), of, axes }), log: flags.includes("log") };
}

// A chart without unset options, so that two that show the same are equal.
export function tidy(chart) {
  const { mode, signals, stats } = chart, made = { mode, signals };
  if (stats) made.stats = true;
  for (const [part, keys] of [["of", signals], ["axes", null]]) {
    const kept = Object.entries(chart[part] ?? {}).map(([key, options]) => [key, Object.fromEntries(
      Object.entries(options).filter(([, value]) => value !== undefined && value !== false && value !== ""))])
      .filter(([key, options]) => Object.keys(options).length && (!keys || keys.includes(key)));
    if (kept.length) made[part] = Object.fromEntries(kept);
  }
  return made;
}

export function setAxis(chart, key, options) {
  chart.axes = { ...chart.axes, [key]: { ...chart.axes?.[key], ...options } };
}

export function setSignal(chart, name, options) {
  chart.of = { ...chart.of, [name]: { ...chart.of?.[name], ...options } };
}

// Reads the address; returns messages about the parts that cannot be shown. Without `look` the zone and the
// theme stay.
export function read(look = true) {
  known = location.hash;
  const query = new URLSearchParams(location.hash.slice(1)), left = [];
  const charts = query.getAll("c").map(chartOf).filter((chart) => chart.signals.length);
  for (const chart of charts.splice(MOST.charts)) left.push(...chart.signals);
  for (const chart of charts) left.push(...chart.signals.splice(MOST.signals));
  const from = Date.parse(query.get("from") ?? ""), to = Date.parse(query.get("to") ?? "");
  const last = Number(query.get("last"));
  const fixed = from < to;
  const cursor = (name) => Number(query.get(name)) > 0 ? Math.round(Number(query.get(name)) * 1e6) / 1e3 : null;
  Object.assign(state, {
    view: query.get("view") === "status" ? "status" : "trends",
    charts,
    live: !fixed,
    length: fixed ? to - from : last > 0 && last < 1e10 ? last * 1000 : 3600_000,
    from: fixed ? from : 0,
    to: fixed ? to : 0,
    while: query.get("while") ?? "",
    gap: query.get("gap") ?? "",
    a: cursor("a"),
    b: cursor("b"),
  });
  if (look) {
    Object.assign(state, {
      zone: query.get("utc") === "1" ? "UTC" : query.get("zone") ?? "",
      theme: ["dark", "light"].includes(query.get("theme")) ? query.get("theme") : "",
      wall: query.get("wall") === "1",
    });
  }
  return left.length ? `This link has ${left.length} signal${left.length === 1 ? "" : "s"} more than the page shows: ${
    left.slice(0, 3).join(", ")}${left.length > 3 ? "…" : ""}` : "";
}
