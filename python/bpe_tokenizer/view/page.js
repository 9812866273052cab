"use strict";

// Arrow keys walk over the chips, one chip of a list being in the order of the Tab key. Choosing one (a click,
// Enter or the space bar) opens the merges of its piece, one step at a time.
function prepare(column) {
  const list = column.querySelector(".bpe-tokens");
  const chips = [...list.children].filter((each) => each.matches("span"));
  const merges = column.querySelector(".bpe-merges");
  chips.forEach((chip, index) => { chip.tabIndex = index ? -1 : 0; });

  function focus(chip) {
    const old = chips.find((each) => each.tabIndex === 0);
    if (old) old.tabIndex = -1;
    chip.tabIndex = 0;
    chip.focus();
  }

  function choose(chip) {
    for (const each of chips) each.setAttribute("aria-selected", each === chip);
    if (chip.dataset.piece === undefined) {
      merges.open = false;
      return;
    }
    for (const section of merges.querySelectorAll("section")) {
      section.hidden = section.dataset.piece !== chip.dataset.piece;
      if (!section.hidden) step(section);
    }
    merges.open = true;
  }

  list.addEventListener("keydown", (event) => {
    const at = chips.indexOf(event.target);
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const last = chips.length - 1;
    const next = {
      ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last,
    }[event.key];
    if (next !== undefined) focus(chips[Math.min(Math.max(next, 0), last)]);
    else if (event.key === "Enter" || event.key === " ") choose(chips[at]);
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => {
    const chip = event.target.closest("span");
    if (!chip) return;
    focus(chip);
    choose(chip);
  });
}

// Buttons that show the steps of a piece's merges up to one, beginning with none.
function step(section) {
  const steps = [...section.querySelectorAll("li")];
  if (!steps.length || section.querySelector("button")) return;
  const said = document.createElement("p");
  said.setAttribute("role", "status");
  let shown = 0;

  function show(count) {
    shown = Math.min(Math.max(count, 0), steps.length - 1);
    steps.forEach((each, index) => { each.hidden = index > shown; });
    said.textContent = `Step ${shown} of ${steps.length - 1}. ${steps[shown].innerText}`;
    back.disabled = shown === 0;
    on.disabled = all.disabled = shown === steps.length - 1;
  }

  function button(name, count) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = name;
    made.addEventListener("click", () => show(count()));
    return made;
  }

  const back = button("Previous merge", () => shown - 1);
  const on = button("Next merge", () => shown + 1);
  const all = button("All merges", () => steps.length - 1);
  section.querySelector("ol").before(back, " ", on, " ", all, said);
  show(0);
}

function prepareAll() {
  document.querySelectorAll(".bpe").forEach(prepare);
}

// The page of the local server: what is typed is cut anew. An answer that is overtaken by more typing is dropped.
function listen(field) {
  const shown = document.getElementById("shown");
  const counts = document.getElementById("counts");
  const problem = document.getElementById("problem");
  let waiting = 0;
  let running = null;

  async function update() {
    running?.abort();
    const request = running = new AbortController();
    try {
      const answer = await fetch("tokens", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ text: field.value }),
        signal: request.signal,
      });
      const body = await answer.text();
      if (request !== running) return;
      if (!answer.ok) throw new Error(body);
      // The server's own HTML, in which every text is escaped; the page's policy runs no script in it.
      shown.innerHTML = body;
      problem.textContent = "";
      prepareAll();
      const lines = [...shown.querySelectorAll(".bpe-counts")].map((each) => each.textContent);
      counts.textContent = lines.join(" / ");
    } catch (error) {
      if (error.name !== "AbortError") problem.textContent = `Not up to date: ${error.message}`;
    }
  }

  field.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(update, 100);
  });
  // A browser that reloads keeps what was typed.
  if (field.value !== field.defaultValue) update();
}

prepareAll();
const typed = document.querySelector("textarea:not([readonly])");
if (typed) listen(typed);
