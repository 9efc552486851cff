// Views: the page's states that people keep in the server, by name.

import * as api from "./api.js";
import { say } from "./message.js";
import { address, state } from "./state.js";

const root = document.getElementById("keep");
const form = root.querySelector("form"), part = (name) => form.elements[name];

export const linkOf = ({ name }) => `#saved=${encodeURIComponent(name)}`;
export const openView = (view) => { location.hash = linkOf(view); };

// The views as they were read last; the search needs no others while the user types.
let views;

export const readViews = () => views = api.views().catch((error) => {
  views = undefined;
  throw error;
});

// The views with all words in their name, description or owner.
export async function findViews(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  const has = ({ name, description, owner }, word) => `${name}\n${description}\n${owner}`.toLowerCase().includes(word);
  return (await (views ?? readViews())).filter((view) => wanted.every((word) => has(view, word)));
}

// The state of a link to a view; another link as it is.
export async function stateOf(hash) {
  const name = new URLSearchParams(hash.slice(1)).get("saved");
  if (name === null) return hash;
  const found = (await readViews()).find((view) => view.name === name);
  if (!found) throw new Error(`There is no view ${name} that you may read.`);
  return `#${found.state}`;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = part("name").value.trim(), isRemoved = event.submitter?.name === "remove";
  try {
    await api.sendView(isRemoved ? { name, remove: true } : { name, description: part("description").value,
      state: new URL(address()).hash.slice(1), signals: [...new Set(state.charts.flatMap(({ signals }) => signals))] });
    views = undefined;
    root.hidePopover();
    say(isRemoved ? `The view ${name} is removed.` : `Kept: ${location.origin}/${linkOf({ name })} opens it.`, true);
    document.getElementById("views").open = false; // read again when it is opened
  } catch (error) {
    root.querySelector(".problem").textContent = error.message;
  }
});
part("cancel").addEventListener("click", () => root.hidePopover());
document.getElementById("keep-view").addEventListener("click", () => {
  root.querySelector(".problem").textContent = "";
  root.showPopover();
  part("name").focus();
});
