// The screen of status: tables, writers, events, losses.

import { disk, events, losses, tables } from "./api.js";
import { ageText, sizeText, timeText } from "./format.js";

const DAY = 86_400_000, MINUTE = 60_000;

// Shows each part when it arrives: the tables wait neither for the events nor for the size of the disk.
export async function showStatus(root) {
  const now = Date.now(), day = { from: now - DAY, to: now };
  if (!root.querySelector("#tables tbody tr")) {
    for (const [name, columns] of [["tables", 12], ["events", 5], ["losses", 6]]) {
      fill(root.querySelector(`#${name} tbody`), [], null, columns, "Reading…");
    }
  }
  // if a node cannot be reached, the tables of the others are shown
  const orError = (asked) => asked.catch((error) => error);
  const parts = { events: orError(events(day)), losses: orError(losses(day)), room: disk() };
  const found = { answer: await tables() };
  showParts(root, found);
  await Promise.all(Object.entries(parts).map(([name, part]) => part.then((value) => {
    found[name] = value;
    showParts(root, found);
  })));
}

function showParts(root, { answer, events: events_, losses: losses_, room }) {
  const [happened, lost] = [events_, losses_].map((each) => (Array.isArray(each) ? each : []));
  const bytes = new Map((room?.logs ?? []).map((log) => [log.table_name, log.bytes]));
  const server = Date.parse(answer.now);
  const rows = answer.tables.map((table) => {
    const [newest, called] = [table.newest, table.called].map((time) => (time ? Date.parse(time) : null));
    const ahead = newest !== null && newest > server + MINUTE;
    // the time of a row that is ahead of the clock is not its time of arrival
    const came = Math.max(called ?? -Infinity, newest === null || ahead ? -Infinity : newest);
    const age = newest === null || came === -Infinity ? null : (server - came) / 1000;
    return { ...table, age, mood: mood(table, age, ahead) };
  });
  fill(root.querySelector("#tables tbody"), rows, (table) => [
    text(table.table_name, table.description), text(table.newest ? timeText(Date.parse(table.newest)) : "never"),
    number(ageText(table.age)), number(table.cycle === null ? "–" : `${table.cycle} s`), number(sizeText(bytes.get(table.table_name))),
    mark(...table.mood), text(table.writer ?? ""),
    number(table.acknowledged), number(table.waiting), number(table.late), number(table.refused),
    wrapped(table.trouble ? `${timeText(Date.parse(table.troubled))}: ${table.trouble}` : ""),
  ]);
  if (events_) fill(root.querySelector("#events tbody"), happened, (event) => [
    text(timeText(Date.parse(event.time))), text(event.table_name), text(event.kind), number(event.rows),
    wrapped(event.message),
  ], 5, events_ instanceof Error ? events_.message : "nothing happened");
  const sums = new Map();
  for (const hour of lost) {
    const sum = sums.get(hour.table_name) ?? { table: hour.table_name, produced: 0, acknowledged: 0, in_log: 0,
      missing: 0, waiting: 0 };
    for (const name of ["produced", "acknowledged", "in_log", "missing", "waiting"]) sum[name] += hour[name] ?? 0;
    sums.set(hour.table_name, sum);
  }
  if (losses_) fill(root.querySelector("#losses tbody"), [...sums.values()], (sum) => [
    text(sum.table), number(sum.produced), number(sum.acknowledged), number(sum.in_log),
    sum.missing ? mark("bad", String(sum.missing)) : number(0), number(sum.waiting),
  ], 6, losses_ instanceof Error ? losses_.message : "no writer has reported its rows");
  const missing = [...sums.values()].reduce((all, sum) => all + sum.missing, 0);
  const waiting = rows.reduce((all, table) => all + (table.waiting ?? 0), 0);
  const late = rows.filter((table) => table.mood[0] !== "good");
  const oldest = Math.max(...rows.map((table) => table.age ?? 0), 0);
  tiles(root.querySelector("#tiles"), [
    [`${rows.length - late.length} of ${rows.length}`, "tables are current", late.length ? "warn" : "good"],
    [rows.filter((table) => table.writer && !table.released).length, "writers", ""],
    [ageText(rows.length ? oldest : null), "the longest without a new row", late.length ? "warn" : "good"],
    [waiting, "rows wait in spools", waiting ? "warn" : "good"],
    ...(!Array.isArray(losses_) ? [] : [[missing, "rows missing in a day", missing ? "bad" : "good"]]),
    ...(!Array.isArray(events_) ? [] : [[happened.length, "events in a day", ""]]),
    ...Object.keys(answer.away).map((node) => ["away", `node ${node}`, "bad"]),
    ...(room ? [[sizeText(room.database), "in the database", ""]] : []),
    ...(room?.total ? [[sizeText(room.free), `free of ${sizeText(room.total)} on its disk`,
      room.free < room.total / 10 ? "bad" : room.free < room.total / 5 ? "warn" : "good"]] : []),
  ]);
}

// seconds without a row after which a table is silent; the server records calls every ten seconds
function quiet(table) {
  // signals of a table of samples have times of their own
  if (table.cycle === null) return Infinity;
  return Math.max(10 * table.cycle, 15);
}

function mood(table, age, ahead) {
  if (ahead && (age === null || age <= quiet(table))) return ["warn", "ahead of the clock"];
  if (age === null) return ["warn", "never written"];
  if (age > quiet(table)) return ["bad", "silent"];
  if (table.state && table.state !== "running") return ["warn", table.state];
  return ["good", "current"];
}

function tiles(root, all) {
  root.replaceChildren(...all.map(([figure, what, kind]) => {
    const tile = document.createElement("div");
    tile.className = `tile ${kind}`;
    const big = document.createElement("b");
    big.textContent = figure;
    tile.append(big, what);
    return tile;
  }));
}

function fill(body, rows, cells, columns = 12, nothing = "no table") {
  body.replaceChildren(...(rows.length ? rows : [null]).map((row) => {
    const line = document.createElement("tr");
    if (row === null) {
      const cell = text(nothing);
      cell.colSpan = columns;
      line.append(cell);
    } else line.append(...cells(row));
    return line;
  }));
}

function cell(content, kind) {
  const made = document.createElement("td");
  made.className = kind;
  made.append(content ?? "");
  return made;
}
const text = (content, title = "") => Object.assign(cell(content, ""), { title });
const number = (content) => cell(content === null || content === undefined ? "" : String(content), "number");
const wrapped = (content) => cell(content, "wrapped");
function mark(kind, content) {
  const made = document.createElement("span");
  made.className = `mark ${kind}`;
  made.textContent = content;
  return cell(made, "");
}
