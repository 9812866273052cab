/** The share menu: ids, JSON, and a link that holds the whole state. */

import { make, roveFocus } from "./dom.js";
import { icon } from "./icons.js";
import { LinkError, toFragment } from "./link.js";

export class ShareMenu {
  #context;
  #tokens;

  /**
   * @param {object} context
   * @param {() => {name: string, text: string, ids: Uint32Array, tokens(): object[]} | null} tokens what is shown
   */
  constructor(context, tokens) {
    this.#context = context;
    this.#tokens = tokens;
    const items = [
      this.#item("link", "Copy link", "Text and settings, in the address", () => this.#copyLink()),
      this.#item("hash", "Copy ids", "As a list", () => this.#copyIds()),
      this.#item("braces", "Copy JSON", "Ids, spans and tokens", () => this.#copyJson()),
      this.#item("print", "Print", "", () => print()),
    ];
    this.menu = make(
      "div",
      { class: "menu", role: "menu", id: "share-menu", popover: "auto", "aria-label": "Share" },
      ...items,
    );
    this.button = make(
      "button",
      {
        type: "button",
        class: "button plain",
        "aria-haspopup": "menu",
        "aria-expanded": "false",
        "aria-controls": "share-menu",
        popovertarget: "share-menu",
      },
      icon("share"),
      make("span", { class: "wide-only" }, "Share"),
    );
    this.button.setAttribute("aria-label", "Share");
    this.menu.addEventListener("toggle", (event) => {
      const isOpen = event.newState === "open";
      this.button.setAttribute("aria-expanded", String(isOpen));
      if (isOpen) {
        this.#place();
        items[0].focus();
      }
    });
    roveFocus(this.menu, () => items);
  }

  #item(name, label, about, act) {
    return make(
      "button",
      {
        type: "button",
        class: "menu-item",
        role: "menuitem",
        tabindex: "-1",
        onclick: () => {
          this.menu.hidePopover();
          this.button.focus();
          void act();
        },
      },
      icon(name),
      make("span", { class: "menu-label" }, label),
      about ? make("span", { class: "menu-about" }, about) : null,
    );
  }

  #place() {
    const box = this.button.getBoundingClientRect();
    this.menu.style.insetBlockStart = `${box.bottom + 6}px`;
    this.menu.style.insetInlineStart = `${Math.max(8, Math.min(box.right, innerWidth - 8) - this.menu.offsetWidth)}px`;
  }

  async #copyLink() {
    const { store, notices } = this.#context;
    // The colour scheme is the reader's own; modes that were not used have no state.
    const shared = Object.entries(store.get()).filter(([name, value]) => name !== "scheme" && value !== null);
    try {
      const fragment = await toFragment(Object.fromEntries(shared));
      history.replaceState(null, "", fragment);
      await this.#copy(location.href, "The link is copied.");
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      notices.show(error.message, "problem");
    }
  }

  async #copyIds() {
    const shown = this.#tokens();
    if (shown) {
      await this.#copy(
        `[${Array.from(shown.ids).join(", ")}]`,
        `${shown.ids.length.toLocaleString("en")} ids are copied.`,
      );
    }
  }

  async #copyJson() {
    const shown = this.#tokens();
    if (!shown) return;
    const { name, text, ids, tokens } = shown;
    await this.#copy(
      JSON.stringify({ tokenizer: name, text, ids: Array.from(ids), tokens: tokens() }),
      "The JSON is copied.",
    );
  }

  async #copy(text, done) {
    const { notices } = this.#context;
    try {
      await navigator.clipboard.writeText(text);
      notices.show(done);
    } catch {
      if (copyBySelection(text)) notices.show(done);
      else notices.show("The browser does not let the page copy.", "problem");
    }
  }
}

/** Copies where the browser gives a page no clipboard, as for some files. */
function copyBySelection(text) {
  const field = make("textarea", { class: "visually-hidden", "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}
