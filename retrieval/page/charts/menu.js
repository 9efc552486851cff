// The look of one signal on a chart: its colour, its line, its axis and the axis's range.

import { axisKey } from "./axes.js";
import { isState } from "./series.js";
import { setAxis, setSignal } from "../state.js";

const root = document.getElementById("look");
const part = (name) => root.querySelector(`[name=${name}]`);
let take = () => {}; // the function that a change calls

// Opens the menu beside `button`; `alter` changes the settings of the chart.
export function menu(chart, name, button, alter) {
  const signal = chart.of(name), fill = () => {
    const { wanted } = chart, key = axisKey({ ...signal, signal: name }, wanted), axis = wanted.axes?.[key] ?? {};
    const look = wanted.of?.[name] ?? {};
    root.querySelector("h3").textContent = name;
    root.querySelector(".about").textContent = [signal.description, signal.unit, signal.type].filter(Boolean).join(" · ");
    part("colour").value = chart.colourOf(name);
    part("line").value = look.line ?? "";
    part("own").checked = Boolean(look.own);
    part("side").value = axis.side ?? "";
    part("invert").checked = Boolean(axis.invert);
    part("min").value = axis.min ?? "";
    part("max").value = axis.max ?? "";
    for (const group of root.querySelectorAll(".of-line")) group.hidden = isState(signal);
    return key;
  };
  fill();
  take = (changed) => {
    const { value, checked } = part(changed), bound = value.trim() === "" ? undefined : Number(value);
    const axis = (options) => (wanted) => setAxis(wanted, axisKey({ ...signal, signal: name }, wanted), options);
    const look = (options) => (wanted) => setSignal(wanted, name, options);
    alter({
      colour: look({ colour: value }), line: look({ line: value }), own: look({ own: checked }),
      automatic: look({ colour: undefined }), side: axis({ side: value }), invert: axis({ invert: checked }),
      min: axis({ min: bound }), max: axis({ max: bound }),
    }[changed]);
    fill();
  };
  root.showPopover();
  const { left, top } = button.getBoundingClientRect(), { width, height } = root.getBoundingClientRect();
  root.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  root.style.top = `${Math.max(8, Math.min(top - height - 6, innerHeight - height - 8))}px`;
}

root.addEventListener("change", (event) => take(event.target.name));
root.addEventListener("click", (event) => {
  if (event.target.name === "automatic") take("automatic");
  if (event.target.name === "close") root.hidePopover();
});
