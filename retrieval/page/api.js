// Requests to the server of this page.

import { state } from "./state.js";

export class ApiError extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

async function answerOf(url, options) {
  const response = await fetch(url, options).catch((error) => {
    throw error.name === "AbortError" ? error : new ApiError(0, "The server does not answer.");
  });
  if (response.ok) return response;
  const text = await response.text();
  let words = text.trim() || response.statusText;
  try {
    words = JSON.parse(text).error ?? words;
  } catch {
    // the answer of a proxy
  }
  throw new ApiError(response.status, words);
}

const ask = (path, parameters, signal) =>
  answerOf(address(path, parameters), { signal, headers: { Accept: "application/json" } }).then((answer) => answer.json());

// An answer as a file.
export const file = (url) => answerOf(url).then((answer) => answer.blob()).catch((error) => {
  throw error instanceof ApiError ? error : new ApiError(0, "The answer is incomplete: nothing is saved.");
});

export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const each of Array.isArray(value) ? value : [value]) query.append(name, each);
  }
  return `/api/v1/${path}?${query}`;
}

const seconds = (milliseconds) => (milliseconds / 1000).toFixed(6);

export const span = ({ from, to }) => ({ from: seconds(from), to: seconds(to) });

// The shown time, and the condition of which it is a part.
export const shown = (time) =>
  ({ ...span(time), ...(state.while ? { while: state.while, ...(state.gap ? { gap: state.gap } : {}) } : {}) });

export const findSignals = (words, limit, signal) => ask("signals", { search: words, limit }, signal);
export const describe = async (names) => {
  const found = new Map();
  if (names.length) for (const each of await ask("latest", { signal: names })) found.set(each.signal, each);
  return found;
};
export const trend = (names, time, points, signal) =>
  ask("trend", { signal: names, ...shown(time), points }, signal).then((answer) => answer.signals);
const analysis = (path) => (names, time, log, signal) =>
  ask(path, { signal: names, ...shown(time), ...(log ? { log: 1 } : {}) }, signal);
export const histogram = analysis("histogram");
export const spectrum = analysis("spectrum");
export const data = (names, time, signal, limit) =>
  ask("data", { signal: names, ...(limit ? span(time) : shown(time)), ...(limit ? { limit } : {}) }, signal).then((answer) => answer.signals);
export const at = (names, time, signal) =>
  ask("at", { signal: names, time: seconds(time) }, signal).then((answer) => answer.signals);
export const me = () => ask("me");
export const tables = () => ask("tables");
export const disk = () => ask("disk");
export const events = (time, table, signal) =>
  ask("events", { ...span(time), limit: 300, ...(table ? { table } : {}) }, signal);
export const marks = (names, time, signal) => ask("marks", { signal: names, ...span(time) }, signal);
const send = (path, content) => answerOf(address(path),
  { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content) });
// Adds a mark, or with its number corrects or withdraws it.
export const sendMark = (number, content) => send(number === undefined ? "marks" : `marks/${number}`, content);
export const views = () => ask("views");
export const sendView = (content) => send("views", content);
// The values of each step (milliseconds) as rows: {at, values}; a value that is missing is NaN.
export const wide = async (names, time, step, signal) => {
  const parameters = { signal: names, ...shown(time), wide: "last", step: `${step}ms`, format: "csv" };
  const lines = (await (await answerOf(address("data", parameters), { signal })).text()).trim().split("\n").slice(1);
  return lines.map((line) => line.split(",")).map(([at, ...values]) =>
    ({ at: Date.parse(at), values: values.map((text) => (text === "" ? NaN : Number(text))) }));
};
export const captures = () => ask("captures");
export const capture = (number, signal) => ask(`captures/${number}`, {}, signal);
export const captured = (number, table, names, signal) =>
  ask(`captures/${number}/${encodeURIComponent(table)}`, { format: "json", signal: names }, signal).then((answer) => answer.signals);
export const why = (name, time) => ask("why", { signal: name, ...span(time) });
export const losses = (time) => ask("losses", span(time));

// Calls `take` with {signal: [[milliseconds, value], …]} until the returned function is called; `refused`
// with the server's message, `lost` when the connection breaks, and `there` when it is open (again).
export function live(names, since, { take, refused, lost, there }) {
  const source = new EventSource(address("live", { signal: names, since: seconds(since) }));
  source.addEventListener("open", there);
  source.addEventListener("error", lost);
  source.addEventListener("values", (event) => take(JSON.parse(event.data)));
  source.addEventListener("refused", (event) => {
    source.close();
    refused(JSON.parse(event.data).error);
  });
  return () => source.close();
}
