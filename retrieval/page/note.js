// The form of a mark, a note at a time: written, corrected or withdrawn as the login of the page.

import * as api from "./api.js";
import { timeText } from "./format.js";
import { state } from "./state.js";
import { instantOf } from "./zones.js";

const root = document.getElementById("note");
const form = root.querySelector("form"), part = (name) => form.elements[name];
let send = async () => {}; // sends what the form has

// Opens the form for a new mark of a chart, or for one that is shown.
export function note(chart, mark = null) {
  const times = mark ? [mark.from, mark.until && mark.to] : [state.a ?? chart.pointed ?? chart.time.to, state.a === null ? null : state.b];
  const [from, to] = times[1] === null || times[0] <= times[1] ? times : times.reverse();
  root.querySelector("h3").textContent = mark ? `Mark ${mark.mark}` : "New mark";
  root.querySelector(".problem").textContent = "";
  part("text").value = mark?.text ?? "";
  part("time").value = timeText(from, true);
  part("until").value = to === null ? "" : timeText(to, true);
  part("all").checked = Boolean(mark && !mark.signals);
  part("all").closest("label").hidden = Boolean(mark);
  part("withdraw").hidden = !mark;
  send = async (withdraw) => {
    const [time, until] = ["time", "until"].map((name) => part(name).value.trim() && instantOf(part(name).value));
    const { value: text } = part("text"), problem = root.querySelector(".problem");
    if (Number.isNaN(time) || Number.isNaN(until) || time === "") {
      problem.textContent = "Write times as 2026-11-28 14:05:00.";
      return;
    }
    // a time that was not changed keeps its microseconds
    const at = (moment, before) => (mark && timeText(before, true) === timeText(moment, true) ? undefined : moment / 1000);
    const signals = mark || part("all").checked ? undefined : chart.wanted.signals;
    try {
      await api.sendMark(mark?.mark, withdraw ? { withdraw: true, text } : {
        text, signals, time: at(time, mark?.from), until: until === "" ? undefined : at(until, mark?.to) });
      root.hidePopover();
      await chart.load(chart.time);
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  root.showPopover();
  part("text").focus();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  send(event.submitter?.name === "withdraw");
});
part("cancel").addEventListener("click", () => root.hidePopover());
