/** The tokenizer picker: buttons in the header, and a dialog with names, files and split patterns. */

import { formatNumber, make, makeSelect } from "./dom.js";
import { icon, iconButton } from "./icons.js";
import { MODELS } from "./models.js";
import { groupFiles, isTokenizerFile, TokenizerError } from "./tokenizers.js";

const SOURCES = { embedded: "in this page", file: "from a file", trained: "trained here" };

export class Picker {
  #context;
  #texts;
  #place = 0;
  #files = [];
  #wanted = null;

  /**
   * @param {object} context
   * @param {(file: File) => void} openText takes files that are texts
   */
  constructor(context, openText) {
    this.#context = context;
    this.#texts = openText;
    this.buttons = make("div", { class: "picker-buttons" });
    this.dialog = this.#makeDialog();
    this.overlay = make(
      "div",
      { class: "drop-overlay", hidden: true },
      make("p", {}, icon("drop"), "Drop a tokenizer or a text file"),
    );
    context.tokenizers.subscribe(() => this.#showButtons());
    context.store.subscribe((state, before) => {
      if (state.mode !== before.mode) this.#showButtons();
    });
    this.#showButtons();
    this.#listenForDrops();
  }

  /** Opens the dialog for a place: 0 is the tokenizer, 1 the one that it is compared with, null only loads one. */
  open(place) {
    this.#place = place;
    this.#say("");
    this.#title.textContent = ["Choose a tokenizer", "Compare with"][place] ?? "Add a tokenizer";
    this.#pattern.hidden = true;
    this.#wanted = null;
    this.#search.value = "";
    this.#showList();
    if (!this.dialog.open) this.dialog.showModal();
    this.#search.focus();
  }

  /**
   * Takes files from a drop or the file dialog: tokenizers, or a text.
   * @param {File[]} files
   * @param {0 | 1 | null} [place]
   */
  async take(files, place = 0) {
    const tokenizers = files.filter((file) => isTokenizerFile(file.name));
    const texts = files.filter((file) => !isTokenizerFile(file.name));
    if (texts.length > 0) this.#texts(texts[0]);
    let at = place;
    for (const group of groupFiles(tokenizers)) {
      const isTaken = await this.#takeGroup(group, at);
      if (!isTaken) return;
      if (at !== null) at = 1;
    }
  }

  async #takeGroup(group, place, options = {}) {
    try {
      this.#say("Loading…");
      const published = group[0].name === this.#wanted?.file ? this.#wanted.name : undefined;
      const name = await this.#context.tokenizers.addFiles(group, { published, ...options });
      await this.#put(place, name);
      this.#say("");
      this.dialog.close();
      this.#context.announce(`${name} is loaded`);
      return true;
    } catch (error) {
      if (!(error instanceof TokenizerError)) throw error;
      if (!this.dialog.open) this.open(place);
      this.#place = place;
      this.#say(error.message, true);
      this.#files = group;
      this.#pattern.hidden = !error.needsPattern;
      if (error.needsPattern) this.#patternSelect.focus();
      return false;
    }
  }

  /** Loads the tokenizer of a name, and puts it in a place if there is one. */
  async #put(place, name) {
    const { tokenizers } = this.#context;
    await (place === null ? tokenizers.load(name) : tokenizers.choose(place, name));
  }

  #search = make("input", {
    type: "search",
    class: "field picker-search",
    placeholder: "GPT-5, Llama, owner/name",
    "aria-label": "Search tokenizers",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => this.#showList(),
    onkeydown: (event) => {
      const buttons = this.#list.querySelectorAll("button");
      if (event.key === "Enter") buttons[0]?.click();
      else if (event.key === "ArrowDown") buttons[0]?.focus();
      else return;
      event.preventDefault();
    },
  });
  #title = make("h2", { class: "dialog-title", id: "picker-title" });
  #list = make("div", { class: "picker-list" });
  #message = make("p", { class: "picker-message", role: "status" });
  #patternSelect;
  #pattern = make("form", { class: "picker-pattern", hidden: true });

  #makeDialog() {
    const input = make("input", {
      type: "file",
      multiple: true,
      class: "visually-hidden",
      tabindex: "-1",
      "aria-label": "Tokenizer files",
      onchange: () => {
        void this.take([...input.files], this.#place);
        input.value = "";
      },
    });
    const patterns = this.#context.data.patterns.map(({ name }) => name);
    this.#patternSelect = makeSelect({ class: "select", id: "picker-pattern" }, patterns);
    this.#pattern.append(
      make("label", { for: "picker-pattern" }, "Its split pattern:"),
      this.#patternSelect,
      make("button", { type: "submit", class: "button primary small" }, "Load"),
    );
    this.#pattern.addEventListener("submit", (event) => {
      event.preventDefault();
      const chosen = this.#context.data.patterns.find(({ name }) => name === this.#patternSelect.value);
      void this.#takeGroup(this.#files, this.#place, { patterns: chosen.patterns });
    });
    const dialog = make(
      "dialog",
      { class: "dialog", "aria-labelledby": "picker-title" },
      make(
        "div",
        { class: "dialog-heading" },
        this.#title,
        iconButton("close", "Close", () => dialog.close()),
      ),
      this.#search,
      this.#message,
      this.#pattern,
      this.#list,
      make(
        "div",
        { class: "picker-drop" },
        make(
          "div",
          {},
          make(
            "p",
            {},
            "Or drop ",
            make("b", {}, "tokenizer.json"),
            `, *.tiktoken${this.#context.data.server ? ", GGUF, tekken.json" : ""}, or vocab.json with merges.txt,`,
            " on the page.",
          ),
          make("p", { class: "quiet" }, "Files stay on this machine."),
        ),
        make("button", { type: "button", class: "button", onclick: () => input.click() }, icon("file"), "Choose files"),
        input,
      ),
    );
    // A click beside the dialog closes it.
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
    return dialog;
  }

  #say(message, isProblem = false) {
    this.#message.textContent = message;
    this.#message.hidden = message === "";
    this.#message.classList.toggle("problem", isProblem);
    this.#message.setAttribute("role", isProblem ? "alert" : "status");
  }

  #showList() {
    const wanted = this.#search.value.trim().toLowerCase();
    const own = this.#context.tokenizers.choices().filter(({ source, loaded }) => source !== "published" || loaded);
    // The ids of models are longer than their names here: gpt-3.5-turbo, o3-mini-2025-01-31.
    const names = (label) => label.toLowerCase().split(", ").filter(Boolean);
    const isFound = ({ label = "", name }) =>
      `${label} ${name}`.toLowerCase().includes(wanted) || names(label).some((each) => wanted.startsWith(`${each}-`));
    const group = (title, all) =>
      all.length === 0 ? null : make(
        "section",
        { class: "picker-group" },
        make("h3", {}, title),
        make("ul", {}, ...all.map((choice) => make("li", {}, this.#choiceButton(choice)))),
      );
    const groups = [
      group("In this page", own.filter(isFound)),
      group(this.#context.data.server ? "Models" : "Models: those that this page lacks need a file", MODELS.filter(isFound)),
      group("Hugging Face hub", repositories(this.#search.value.trim())),
    ].filter(Boolean);
    const nothing = make("p", { class: "quiet picker-nothing" }, "Nothing has this name. A repository of the Hugging Face hub is owner/name.");
    this.#list.replaceChildren(...(groups.length > 0 ? groups : [nothing]));
  }

  #choiceButton({ label, name, source, loaded }) {
    const isChosen = label === undefined && name === this.#context.store.get().tokenizers[this.#place];
    const about = loaded
      ? `${formatNumber(loaded.info.vocabSize)} tokens, ${SOURCES[source] || "from this machine"}`
      : source === "embedded"
      ? SOURCES.embedded
      : name;
    return make(
      "button",
      {
        type: "button",
        class: "picker-choice",
        "aria-current": isChosen ? "true" : false,
        onclick: () => void this.#choose(name),
      },
      make("span", { class: "picker-name" }, label ?? name),
      about === (label ?? name) ? null : make("span", { class: "picker-about" }, about),
      isChosen ? icon("check") : null,
    );
  }

  async #choose(name) {
    this.#say(`Loading ${name}…`);
    try {
      await this.#put(this.#place, name);
      this.dialog.close();
    } catch (error) {
      if (!(error instanceof TokenizerError)) throw error;
      this.#wanted = this.#context.data.names.find((each) => each.name === error.published) || null;
      // That a page does not contain a published tokenizer is not an error.
      this.#say(error.message, this.#context.data.server || error.published === null);
    }
  }

  #showButtons() {
    const { tokenizers, store } = this.#context;
    const { tokenizers: names, mode } = store.get();
    const focused = this.buttons.contains(document.activeElement)
      ? [...this.buttons.querySelectorAll("button")].indexOf(document.activeElement)
      : -1;
    const opener = (place, attributes, ...content) =>
      make("button", { type: "button", "aria-haspopup": "dialog", onclick: () => this.open(place), ...attributes }, ...content);
    const button = (place, name) => {
      const label = `${place === 0 ? "Tokenizer" : "Compared with"}: ${name || "none"}`;
      const shownName = make("span", { class: "picker-button-name" }, name || "No tokenizer");
      return opener(place, { class: "button picker-button", "aria-label": label }, shownName, icon("down"));
    };
    const shown = [button(0, names[0])];
    if (mode === "text" && names[1] !== undefined) {
      shown.push(
        make("span", { class: "picker-versus", "aria-hidden": "true" }, "vs"),
        button(1, names[1]),
        iconButton("close", "End the comparison", () => void tokenizers.choose(1, null)),
      );
    } else if (mode === "text") {
      shown.push(opener(1, { class: "button plain picker-compare" }, icon("compare"), "Compare"));
    }
    this.buttons.replaceChildren(...shown);
    if (focused >= 0) {
      (this.buttons.querySelectorAll("button")[focused] || this.buttons.querySelector("button"))?.focus();
    }
  }

  #listenForDrops() {
    const listen = (type, act) =>
      addEventListener(type, (event) => {
        if (!event.dataTransfer?.types.includes("Files")) return;
        event.preventDefault();
        act(event);
      });
    listen("dragenter", () => {
      this.overlay.hidden = false;
    });
    listen("dragover", () => {});
    listen("dragleave", (event) => {
      // Without another element the files leave the window.
      if (event.relatedTarget === null) this.overlay.hidden = true;
    });
    listen("drop", (event) => {
      this.overlay.hidden = true;
      void this.take([...event.dataTransfer.files], this.dialog.open ? this.#place : 0);
    });
  }
}

/** The repository that a search names, as a list. */
function repositories(search) {
  const found = /^(?:hf:|https:\/\/huggingface\.co\/)?([\w.-]+\/[\w.-]+)\/?$/.exec(search);
  return found ? [{ name: `hf:${found[1]}` }] : [];
}
