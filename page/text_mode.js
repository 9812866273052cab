/** Text mode: a text, its tokens for one or two tokenizers, and what is known about each token. */

import { comparisonLine, differences } from "./comparison.js";
import { DetailsPanel, HoverCard, tokenFacts } from "./details.js";
import { countNoun, formatNumber, formatPrice, make, makeSelect, makeSwitch } from "./dom.js";
import { Editor } from "./editor.js";
import { EXAMPLES } from "./examples.js";
import { isAbort } from "./core_client.js";
import { ChipMetrics, TokenBytes } from "./measure.js";
import { createMergesPanel } from "./merges.js";
import { TokenView } from "./token_view.js";

// Screen readers hear the count when the typing pauses.
const PAUSE_MILLISECONDS = 900;
const MAX_TEXT_FILE = 20_000_000;
// Between the selected chip and the details that cover the page.
const CHIP_MARGIN = 16;

/** One tokenizer's side: its count, and its tokens. */
class Pane {
  #context;
  #bytes = new Map();
  encoded = null;
  text = "";
  tokenizer = null;

  constructor(context, metrics, place, events) {
    this.#context = context;
    this.place = place;
    this.view = new TokenView(metrics, context.store.get(), {
      hovered: (token) => events.hovered(this, token),
      selected: (token) => events.selected(this, token),
      left: () => events.left(),
    });
    this.count = make("span", { class: "count-number number" }, "0");
    this.noun = make("span", { class: "count-noun" }, "tokens");
    this.name = make("span", { class: "pane-name" });
    this.facts = make("p", { class: "pane-facts number" });
    this.bar = make("div", { class: "pane-bar", "aria-hidden": "true" }, make("span"));
    this.problem = make("p", { class: "pane-problem problem", hidden: true });
    this.empty = make(
      "p",
      { class: "pane-empty quiet", hidden: true },
      "No text, no tokens. Type one, drop a file, or choose an example.",
    );
    this.element = make(
      "section",
      { class: "pane" },
      make(
        "div",
        { class: "pane-heading" },
        make("h2", { class: "count" }, this.count, " ", this.noun),
        this.name,
        this.facts,
        this.bar,
      ),
      this.problem,
      this.empty,
      this.view.element,
    );
  }

  /** Encodes a text and draws its tokens. Resolves to whether they are drawn; a newer text takes the place of an older. */
  async update(text, tokenizer, special) {
    this.tokenizer = tokenizer;
    let encoded;
    try {
      encoded = await this.#context.client.encodeView(tokenizer.key, text, { special, latest: `pane ${this.place}` });
    } catch (error) {
      if (!isAbort(error)) this.#fail(error.message);
      return false;
    }
    if (this.tokenizer !== tokenizer) return false;
    const bytes = this.#bytesOf(tokenizer.key);
    bytes.add(encoded.table);
    this.problem.hidden = true;
    this.text = text;
    this.encoded = encoded;
    this.view.setName(`Tokens of ${tokenizer.name}`);
    this.view.show(text, encoded, bytes);
    this.showFacts();
    return true;
  }

  /** The worker sends the bytes of an id once; they are kept for each tokenizer. */
  #bytesOf(key) {
    if (!this.#bytes.has(key)) this.#bytes.set(key, new TokenBytes());
    return this.#bytes.get(key);
  }

  showFacts() {
    if (this.encoded === null) return;
    const count = this.encoded.ids.length;
    const { byteCount } = this.encoded;
    this.empty.hidden = count > 0;
    this.count.textContent = formatNumber(count);
    this.noun.textContent = count === 1 ? "token" : "tokens";
    this.name.textContent = this.tokenizer.name;
    this.element.setAttribute("aria-label", this.tokenizer.name);
    const perToken = count > 0 ? `${(byteCount / count).toFixed(2)} bytes per token` : "";
    this.facts.replaceChildren(
      ...(perToken ? [make("span", {}, perToken)] : []),
      make("span", {}, formatPrice((count * this.#context.store.get().price) / 1e6)),
    );
  }

  #fail(message) {
    this.problem.textContent = message;
    this.problem.hidden = false;
  }
}

/**
 * @param {object} context
 * @returns {object} what a mode is, and what opens and shares texts
 */
export function createTextMode(context) {
  const { store, tokenizers, announce } = context;
  const metrics = new ChipMetrics();
  const hoverCard = new HoverCard();
  const events = { hovered, selected, left };
  const panes = [new Pane(context, metrics, 0, events), new Pane(context, metrics, 1, events)];
  const editor = new Editor(store.get().text, { changed: typed, moved: caretMoved });
  const details = new DetailsPanel(context, createMergesPanel(context), () => closeDetails(true));
  let keyTime = 0;
  let followsCaret = false;
  let pause = 0;
  let isShown = false;
  let isStale = true;
  let detailsPane = panes[0];

  const textCounts = make("p", { class: "text-counts number", "aria-live": "off" });
  const versus = make("p", { class: "versus-line number" });
  const paneGrid = make("div", { class: "panes" }, panes[0].element);
  const element = make(
    "div",
    { class: "text-mode" },
    make(
      "section",
      { class: "panel editor-panel", "aria-labelledby": "text-label" },
      make(
        "div",
        { class: "panel-heading" },
        make("h2", { class: "panel-title" }, make("label", { for: "text", id: "text-label" }, "Text")),
        textCounts,
        examplesSelect(),
      ),
      editor.element,
    ),
    make(
      "section",
      { class: "panel tokens-panel", "aria-label": "Tokens" },
      toolbar(),
      versus,
      paneGrid,
      details.element,
    ),
  );
  element.append(hoverCard.element);

  editor.field.addEventListener("beforeinput", (event) => {
    keyTime = event.timeStamp;
  });
  metrics.onChange(() => {
    for (const pane of panes) pane.view.setSwitches(store.get());
  });
  store.subscribe(changed);
  tokenizers.subscribe(() => update());

  function examplesSelect() {
    const options = [["", "Examples"], ...EXAMPLES.map(({ name }, at) => [at, name])];
    const select = makeSelect({ class: "select small", "aria-label": "Examples" }, options);
    select.addEventListener("change", () => {
      if (select.value === "") return;
      store.set({ text: EXAMPLES[Number(select.value)].text });
      select.value = "";
    });
    return select;
  }

  function toolbar() {
    const state = store.get();
    const price = make("input", {
      class: "field small price",
      type: "number",
      min: "0",
      max: "1000000",
      step: "any",
      inputmode: "decimal",
      "aria-label": "Dollars per million tokens",
      value: String(state.price),
    });
    price.addEventListener("input", () => {
      const value = Number(price.value);
      if (price.value !== "" && value >= 0 && value <= 1e6) store.set({ price: value });
    });
    store.subscribe(({ price: value }, before) => {
      if (value !== before.price && Number(price.value) !== value) price.value = String(value);
    });
    return make(
      "div",
      { class: "toolbar" },
      stateSwitch("Invisible characters", "showsInvisible"),
      stateSwitch("Ids", "showsIds"),
      stateSwitch("Special tokens", "readsSpecial"),
      make(
        "label",
        { class: "price-label" },
        make("span", { "aria-hidden": "true" }, "$"),
        price,
        make("span", { class: "quiet" }, "per 1M tokens"),
      ),
    );
  }

  function stateSwitch(label, name) {
    const made = makeSwitch(label, store.get()[name], (isOn) => store.set({ [name]: isOn }));
    store.subscribe((state) => {
      made.control.checked = state[name];
    });
    return made;
  }

  function changed(state, before) {
    const is = (name) => state[name] !== before[name];
    if (is("text")) {
      if (editor.text !== state.text) editor.setText(state.text);
      closeDetails(false);
    }
    if (is("showsInvisible") || is("showsIds")) {
      for (const pane of panes) pane.view.setSwitches(state);
    }
    if (is("price")) { for (const pane of panes) pane.showFacts(); }
    if (is("text") || is("readsSpecial")) update();
  }

  /** Encodes for both panes, as soon as the mode is shown. */
  function update() {
    isStale = true;
    if (!isShown) return;
    isStale = false;
    const { text } = store.get();
    const [one, other] = [tokenizers.at(0), tokenizers.at(1)];
    if (one === null) return;
    const hadOther = panes[1].element.isConnected;
    if (other === null && hadOther) {
      panes[1].element.remove();
      panes[1].encoded = null;
      panes[0].view.setMarked(null);
    } else if (other !== null && !hadOther) paneGrid.append(panes[1].element);
    element.classList.toggle("is-comparing", other !== null);
    versus.hidden = other === null;
    [one, other].forEach((tokenizer, place) => {
      if (tokenizer !== null) void updatePane(panes[place], text, tokenizer);
    });
  }

  async function updatePane(pane, text, tokenizer) {
    if (await pane.update(text, tokenizer, tokenizers.special(tokenizer))) drawn(pane);
  }

  function drawn(pane) {
    const { text, encoded } = pane;
    if (pane.place === 0) {
      const { characterCount, byteCount } = encoded;
      textCounts.replaceChildren(
        make("span", {}, countNoun(characterCount, "character")),
        make("span", {}, countNoun(byteCount, "byte")),
        ...(editor.lineEnds ? [make("span", { class: "tag", title: "Lines keep their ends." }, editor.lineEnds)] : []),
      );
    }
    if (followsCaret && document.activeElement === editor.field && text === store.get().text) {
      pane.view.reveal(pane.view.tokenAt(Math.max(0, editor.field.selectionStart - 1)));
    }
    compare();
    if (keyTime > 0 && text === store.get().text) measureDrawn();
    clearTimeout(pause);
    pause = setTimeout(() => announce(spokenCounts()), PAUSE_MILLISECONDS);
  }

  /** Records the time from a key to the frame that shows its tokens, for benchmarks. */
  function measureDrawn() {
    const start = keyTime;
    keyTime = 0;
    requestAnimationFrame(() =>
      setTimeout(() => {
        performance.clearMeasures("key-to-tokens");
        performance.measure("key-to-tokens", { start, end: performance.now() });
      })
    );
  }

  function compare() {
    const [one, other] = panes;
    if (!other.element.isConnected || !one.encoded || !other.encoded || one.text !== other.text) return;
    const marks = differences(one.encoded, other.encoded);
    one.view.setMarked(marks[0]);
    other.view.setMarked(marks[1]);
    const counts = panes.map((pane) => pane.encoded.ids.length);
    const most = Math.max(1, ...counts);
    panes.forEach((pane, at) => pane.bar.style.setProperty("--share", `${(100 * counts[at]) / most}%`));
    versus.hidden = counts[0] === 0 && counts[1] === 0;
    versus.textContent = comparisonLine(one.tokenizer.name, counts[0], other.tokenizer.name, counts[1]);
  }

  function spokenCounts() {
    return panes[1].element.isConnected
      ? versus.textContent
      : `${panes[0].count.textContent} ${panes[0].noun.textContent}`;
  }

  function typed(text, event) {
    followsCaret = event.inputType !== "insertFromPaste" && event.inputType !== "insertFromDrop";
    store.set({ text });
  }

  function caretMoved(range) {
    const linked = range !== null && range.end > range.start ? range : null;
    for (const pane of panes) pane.view.setLinked(linked);
  }

  function hovered(pane, token) {
    const facts = tokenFacts(pane.view, token);
    const chip = pane.view.chipOf(token);
    if (chip) hoverCard.show(facts, chip);
    editor.highlight(facts);
    for (const each of panes) each.view.setLinked(each === pane ? null : facts);
  }

  function left() {
    hoverCard.hide();
    editor.highlight(null);
    for (const pane of panes) pane.view.setLinked(null);
  }

  function selected(pane, token) {
    const other = panes[1 - pane.place];
    other.view.markSelected(-1);
    hoverCard.hide();
    if (token < 0) {
      closeDetails(true);
      return;
    }
    detailsPane = pane;
    const facts = tokenFacts(pane.view, token);
    editor.highlight(facts);
    editor.select(facts);
    const shown = details.show(facts, pane.tokenizer);
    const reveal = () => {
      if (other.element.isConnected) other.view.reveal(other.view.tokenAt(facts.start));
      pane.view.reveal(token);
      scrollAboveDetails(pane.view.chipOf(token));
    };
    reveal();
    // The merges make the details higher.
    void shown.then(() => {
      if (!details.element.hidden && detailsPane === pane && pane.view.selected === token) reveal();
    });
  }

  /** In one column the details cover the end of the window. */
  function scrollAboveDetails(chip) {
    const hidden = (chip?.getBoundingClientRect().bottom ?? 0) - details.element.getBoundingClientRect().top;
    if (hidden > 0) scrollBy(0, hidden + CHIP_MARGIN);
  }

  function closeDetails(movesFocus) {
    if (details.element.hidden) return;
    const token = detailsPane.view.selected;
    details.hide();
    for (const pane of panes) pane.view.markSelected(-1);
    if (movesFocus && token >= 0) detailsPane.view.focusToken(token);
  }

  return {
    element,
    enter() {
      isShown = true;
      if (isStale) update();
    },
    leave() {
      isShown = false;
      hoverCard.hide();
    },
    /** Replaces the text by that of a file. */
    async openText(file) {
      if (file.size > MAX_TEXT_FILE) {
        const sizes = [file.size, MAX_TEXT_FILE].map((size) => formatNumber(size / 1e6));
        context.notices.show(`${file.name} has ${sizes[0]} MB, and the page takes texts of up to ${sizes[1]} MB.`, "problem");
        return;
      }
      let content;
      try {
        content = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      } catch {
        context.notices.show(`${file.name} is not opened: it is not a text in UTF-8.`, "problem");
        return;
      }
      store.set({ text: content, mode: "text" });
    },
    /** Calls a function with the element of the tokens while all of them are drawn. */
    pictured(act) {
      paneGrid.classList.add("is-pictured");
      for (const pane of panes) pane.view.drawAll();
      act(paneGrid);
      for (const pane of panes) pane.view.drawVisible();
      paneGrid.classList.remove("is-pictured");
    },
    /** What the share menu copies: the tokens of the first tokenizer. */
    shown() {
      const { encoded, text, tokenizer, view } = panes[0];
      if (encoded === null) return null;
      const { ids, starts, ends, byteStarts, byteEnds } = encoded;
      const tokens = () =>
        Array.from(ids, (id, at) => ({
          id,
          bytes: Array.from(view.bytes.get(id)),
          span: [starts[at], ends[at]],
          byteSpan: [byteStarts[at], byteEnds[at]],
        }));
      return { name: tokenizer.name, text, ids, tokens };
    },
  };
}
