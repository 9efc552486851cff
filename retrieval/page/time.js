// The time that is shown: moved, scaled, entered, gone back from, or following the machine.

import { inputText, inputTime } from "./format.js";
import { say } from "./message.js";
import { change, shownTime, state } from "./state.js";

const by = (id) => document.getElementById(id);
const before = []; // times that were shown

export function remember() {
  before.push({ live: state.live, length: state.length, ...shownTime() });
}

// `later`: one of many small changes, which the data follow when they are over.
export function setTime(from, to, { later = false } = {}) {
  if (!(to - from >= 1)) return;
  if (!later) remember();
  change({ live: false, from, to, length: to - from }, { later });
}

export function shift(share) {
  const { from, to } = shownTime(), move = (to - from) * share;
  setTime(from + move, to + move);
}

export function scale(factor) {
  const { from, to } = shownTime(), middle = (from + to) / 2, half = ((to - from) / 2) * factor;
  setTime(middle - half, middle + half);
}

export function back() {
  const last = before.pop();
  if (last) change(last.live ? { live: true, length: last.length } : { ...last });
}

export function follow(on) {
  change(on ? { live: true } : { live: false, ...shownTime() });
}

// Puts the shown time into the controls.
export function showTime() {
  const { from, to } = shownTime();
  for (const [id, at] of [["from", from], ["to", to]]) {
    if (document.activeElement !== by(id)) by(id).value = inputText(at);
  }
  const preset = [...by("preset").options].find((option) => Number(option.value) * 1000 === Math.round(state.length));
  by("preset").value = preset ? preset.value : "";
  by("live").ariaPressed = String(state.live);
  by("back").disabled = !before.length;
}

by("earlier").addEventListener("click", () => shift(-0.5));
by("later").addEventListener("click", () => shift(0.5));
by("back").addEventListener("click", back);
by("live").addEventListener("click", () => follow(!state.live));
by("preset").addEventListener("change", (event) => {
  const length = Number(event.target.value) * 1000;
  if (!length) return;
  if (state.live) {
    remember();
    change({ length });
  } else setTime(state.to - length, state.to);
});
for (const id of ["from", "to"]) {
  by(id).addEventListener("change", () => {
    const from = inputTime(by("from").value), to = inputTime(by("to").value);
    if (from < to) setTime(from, to);
    else say("The time must begin before it ends.");
  });
}
