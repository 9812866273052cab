"use strict";

// Keyboard control of a list of tokens. Tab reaches one token of the list (roving tabindex); arrow keys move to
// the others. A click, Enter or the space bar opens the merges of the token's piece.
function initColumn(column) {
  const list = column.querySelector(".bpe-tokens");
  const tokens = [...list.children].filter((each) => each.matches("span"));
  const merges = column.querySelector(".bpe-merges");
  tokens.forEach((token, index) => { token.tabIndex = index ? -1 : 0; });

  function focus(token) {
    const old = tokens.find((each) => each.tabIndex === 0);
    if (old) old.tabIndex = -1;
    token.tabIndex = 0;
    token.focus();
  }

  function choose(token) {
    for (const each of tokens) each.setAttribute("aria-selected", each === token);
    if (token.dataset.piece === undefined) {
      merges.open = false;
      return;
    }
    for (const section of merges.querySelectorAll("section")) {
      section.hidden = section.dataset.piece !== token.dataset.piece;
      if (!section.hidden) initSteps(section);
    }
    merges.open = true;
  }

  list.addEventListener("keydown", (event) => {
    const at = tokens.indexOf(event.target);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const last = tokens.length - 1;
    const next = {
      ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last,
    }[event.key];
    if (next !== undefined) focus(tokens[Math.min(Math.max(next, 0), last)]);
    else if (event.key === "Enter" || event.key === " ") choose(tokens[at]);
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => {
    const token = event.target.closest("span");
    if (!token) return;
    focus(token);
    choose(token);
  });
}

// Adds buttons that show the merges of a piece step by step.
function initSteps(section) {
  const steps = [...section.querySelectorAll("li")];
  if (!steps.length || section.querySelector("button")) return;
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  let shown = 0;

  function show(count) {
    shown = Math.min(Math.max(count, 0), steps.length - 1);
    steps.forEach((each, index) => { each.hidden = index > shown; });
    status.textContent = `Step ${shown} of ${steps.length - 1}. ${steps[shown].innerText}`;
    back.disabled = shown === 0;
    next.disabled = all.disabled = shown === steps.length - 1;
  }

  function button(name, count) {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = name;
    element.addEventListener("click", () => show(count()));
    return element;
  }

  const back = button("Previous merge", () => shown - 1);
  const next = button("Next merge", () => shown + 1);
  const all = button("All merges", () => steps.length - 1);
  section.querySelector("ol").before(back, " ", next, " ", all, status);
  show(0);
}

function initAll() {
  document.querySelectorAll(".bpe").forEach(initColumn);
}

// On the local server: tokenizes the text again while the user types. Aborts a request when a newer one starts.
function watchInput(field) {
  const shown = document.getElementById("shown");
  const counts = document.getElementById("counts");
  const problem = document.getElementById("problem");
  let timer = 0;
  let current = null;

  async function update() {
    current?.abort();
    const request = current = new AbortController();
    try {
      const answer = await fetch("tokens", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ text: field.value }),
        signal: request.signal,
      });
      const body = await answer.text();
      if (request !== current) return;
      if (answer.status === 503) {  // The server is busy, perhaps with earlier texts of this field.
        clearTimeout(timer);
        timer = setTimeout(update, 1000 * (Number(answer.headers.get("Retry-After")) || 1));
      }
      if (!answer.ok) throw new Error(body);
      // Safe: the server escapes every text, and the page's policy blocks inline scripts.
      shown.innerHTML = body;
      problem.textContent = "";
      initAll();
      const lines = [...shown.querySelectorAll(".bpe-counts")].map((each) => each.textContent);
      counts.textContent = lines.join(" / ");
    } catch (error) {
      if (error.name !== "AbortError") problem.textContent = `Not up to date: ${error.message}`;
    }
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, 100);
  });
  // A reloading browser keeps the text of the field.
  if (field.value !== field.defaultValue) update();
}

initAll();
const editable = document.querySelector("textarea:not([readonly])");
if (editable) watchInput(editable);
