// The displayed time: moved, scaled, entered, or following the machine.

import { timeText } from "./format.js";
import { say } from "./message.js";
import { change, depth, shownTime, state } from "./state.js";
import { instantOf } from "./zones.js";

const by = (id) => document.getElementById(id);

// `later`: one of many small changes; data are requested after the last of them.
export function setTime(from, to, { later = false } = {}) {
  if (!(to - from >= 1)) return;
  change({ live: false, from, to, length: to - from }, { later, step: !later });
}

export function shift(share) {
  const { from, to } = shownTime(), move = (to - from) * share;
  setTime(from + move, to + move);
}

export function scale(factor) {
  const { from, to } = shownTime(), middle = (from + to) / 2, half = ((to - from) / 2) * factor;
  setTime(middle - half, middle + half);
}

// Goes back to the previous state of this page, like the browser's Back.
export function back() {
  if (depth()) history.back();
}

export function follow(on) {
  change(on ? { live: true } : { live: false, ...shownTime() }, { step: true });
}

// Puts the shown time into the controls; an unfinished input stays.
let entered = null;
export function showTime() {
  const { from, to } = shownTime();
  for (const [id, at] of [["from", from], ["to", to]]) if (id !== entered) by(id).value = timeText(at);
  const preset = [...by("preset").options].find((option) => Number(option.value) * 1000 === Math.round(state.length));
  by("preset").value = preset ? preset.value : "";
  by("live").ariaPressed = String(state.live);
  by("back").disabled = !depth();
}

by("earlier").addEventListener("click", () => shift(-0.5));
by("later").addEventListener("click", () => shift(0.5));
by("back").addEventListener("click", back);
by("live").addEventListener("click", () => follow(!state.live));
by("preset").addEventListener("change", (event) => {
  const length = Number(event.target.value) * 1000;
  if (!length) return;
  if (state.live) change({ length }, { step: true });
  else setTime(state.to - length, state.to);
});
for (const id of ["from", "to"]) {
  by(id).addEventListener("input", () => { entered = id; });
  by(id).addEventListener("blur", () => { entered = null; });
  by(id).addEventListener("change", () => {
    entered = null;
    const from = instantOf(by("from").value), to = instantOf(by("to").value);
    if (from < to) {
      say("");
      setTime(from, to);
    } else if (Number.isNaN(from + to)) say("Write a time as 2026-11-28 14:05:00.");
    else say("The time must begin before it ends.");
  });
}
