// What the page shows, kept in its address, so that a link shows the same.

export const state = {
  view: "trends",
  live: true,
  length: 3600_000, // milliseconds
  from: 0,
  to: 0,
  utc: false,
  theme: "",
  wall: false,
  a: null, // cursors: milliseconds, null is none
  b: null,
  charts: [], // {signals: [names], mode, log}; log is there where the axis of values is logarithmic
};

const listeners = new Set();
export const onChange = (listener) => listeners.add(listener);

export function change(values, why = {}) {
  Object.assign(state, values);
  for (const listener of listeners) listener(why);
  write();
}

export function shownTime(now = Date.now()) {
  return state.live ? { from: now - state.length, to: now } : { from: state.from, to: state.to };
}

// A browser takes no more than some changes of the address in a second. One that was entered meanwhile stays, and
// is read when its event comes.
let pending, known = location.hash;
function write() {
  pending ??= setTimeout(() => {
    pending = undefined;
    if (location.hash !== known) return;
    history.replaceState(null, "", address());
    known = location.hash;
  }, 100);
}

// The address of what is shown.
export function address() {
  const query = new URLSearchParams();
  if (state.view !== "trends") query.set("view", state.view);
  for (const { mode, log, signals } of state.charts) {
    query.append("c", [log ? `${mode}:log` : mode, ...signals].map(encodeURIComponent).join(","));
  }
  if (state.live) query.set("last", state.length / 1000);
  else {
    query.set("from", new Date(state.from).toISOString());
    query.set("to", new Date(state.to).toISOString());
  }
  if (state.utc) query.set("utc", "1");
  if (state.theme) query.set("theme", state.theme);
  if (state.wall) query.set("wall", "1");
  // to the microsecond, which a row's time has
  for (const name of ["a", "b"]) if (state[name] !== null) query.set(name, (state[name] / 1000).toFixed(6));
  return `${location.origin}${location.pathname}#${query}`;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a link that somebody has typed
  }
}

export function read() {
  known = location.hash;
  const query = new URLSearchParams(location.hash.slice(1));
  const charts = query.getAll("c").map((text) => {
    const [head, ...signals] = text.split(",").map(decoded), [mode, axis] = head.split(":");
    return { mode, signals: signals.slice(0, 12), ...(axis === "log" ? { log: true } : {}) };
  });
  const from = Date.parse(query.get("from") ?? ""), to = Date.parse(query.get("to") ?? "");
  const last = Number(query.get("last"));
  const fixed = from < to;
  const cursor = (name) => Number(query.get(name)) > 0 ? Math.round(Number(query.get(name)) * 1e6) / 1e3 : null;
  Object.assign(state, {
    view: query.get("view") === "status" ? "status" : "trends",
    charts: charts.filter((chart) => chart.signals.length).slice(0, 24),
    live: !fixed,
    length: fixed ? to - from : last > 0 && last < 1e10 ? last * 1000 : 3600_000,
    from: fixed ? from : 0,
    to: fixed ? to : 0,
    utc: query.get("utc") === "1",
    theme: ["dark", "light"].includes(query.get("theme")) ? query.get("theme") : "",
    wall: query.get("wall") === "1",
    a: cursor("a"),
    b: cursor("b"),
  });
}
