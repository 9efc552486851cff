// The line below the head for errors and confirmations.

const line = document.getElementById("message");

export function say(words, good = false) {
  line.className = good ? "good" : "";
  line.textContent = words;
  if (good) setTimeout(() => line.textContent === words && say(""), 4000);
}

export const failed = (error) => say(error.status === 401 ? "Log in to see this." : error.message);
