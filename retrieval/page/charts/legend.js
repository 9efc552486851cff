// The list below a chart: each signal, its colour, and its current value in the form of the view.

export function legend(list, chart) {
  const { series, view } = chart;
  while (list.children.length > series.length) list.lastElementChild.remove();
  for (const [index, each] of series.entries()) {
    let item = list.children[index];
    if (item?.dataset.signal !== each.signal) {
      const made = itemOf(each.signal);
      if (item) item.replaceWith(made);
      else list.append(made);
      item = made;
    }
    const part = (name) => item.querySelector(`.${name}`);
    const { text, title = "", alarm = "", stats = "" } = view.current(each), isHidden = chart.isHidden(each.signal);
    part("swatch").style.background = each.colour ?? "currentcolor";
    part("name").textContent = view.label(each);
    part("toggle").ariaPressed = String(!isHidden);
    part("value").textContent = text;
    part("value").title = title;
    for (const kind of ["alarm", "warn"]) part("value").classList.toggle(kind, alarm === kind);
    part("stats").textContent = stats;
    item.classList.toggle("gone", isHidden);
  }
}

function itemOf(signal) {
  const item = document.createElement("li");
  item.dataset.signal = signal;
  const toggle = button("toggle", "", `Show ${signal}`);
  toggle.title = "Hide or show; a double click shows this one only";
  toggle.append(span("swatch"), span("name"));
  toggle.removeAttribute("aria-label");
  item.append(toggle, span("value"), span("stats"), button("more", "⋯", `Look of ${signal}`),
    button("remove", "✕", `Take ${signal} off this chart`));
  return item;
}

const span = (className) => Object.assign(document.createElement("span"), { className });

function button(className, textContent, ariaLabel) {
  return Object.assign(document.createElement("button"), { type: "button", className, textContent, ariaLabel });
}
