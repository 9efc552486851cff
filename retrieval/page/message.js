// The line below the head for errors and confirmations.

const line = document.getElementById("message");
const failures = new Map(); // the last message of each failed action, until it succeeds

export function say(words, good = false) {
  line.className = good ? "good" : "";
  line.textContent = words;
  if (good) setTimeout(() => line.textContent === words && say(""), 4000);
}

export function failed(error, what) {
  const words = error.status === 401 ? "Log in to see this." : error.message;
  if (what) failures.set(what, words);
  say(words);
}

// Removes the message of an action that works again or has ended; messages of others stay.
export function worked(what) {
  const words = failures.get(what);
  if (failures.delete(what) && line.textContent === words) say([...failures.values()].at(-1) ?? "");
}
