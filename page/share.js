/** The share menu: ids, JSON, and a link that holds the whole state. */

import { copyToClipboard, countNoun, downloadFile, make, roveFocus } from "./dom.js";
import { icon } from "./icons.js";
import { LinkError, toFragment } from "./link.js";
import { savePng, saveSvg } from "./picture.js";

const ONLY_FRAGMENT = "The part of the link after # is copied: only this machine has this page. Put it after the address of any copy of the page.";

export class ShareMenu {
  #context;
  #tokens;

  /**
   * @param {object} context
   * @param {{shown(): {name: string, text: string, ids: Uint32Array, tokens(): object[]} | null,
   *   pictured(save: (element: Element) => void): void}} text what the text mode shows
   */
  constructor(context, text) {
    this.#context = context;
    this.#tokens = () => text.shown();
    const picture = (save) => text.pictured((element) => void save("tokens", element));
    const items = [
      this.#item("link", "Copy link", "Text and settings, in the address", () => this.#copyLink()),
      this.#item("file", "Save this view", "One HTML file with its tokenizers", () => this.#saveView()),
      this.#item("download", "Tokens as SVG", "", () => picture(saveSvg)),
      this.#item("download", "Tokens as PNG", "", () => picture(savePng)),
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
    const { data, notices } = this.#context;
    try {
      const fragment = await toFragment({ ...this.#state(), sources: await this.#sources() });
      history.replaceState(null, "", fragment);
      // The address of the local server is of use to nobody else, and holds its secret.
      const base = data.publicUrl || (data.server ? "" : location.href.split("#")[0]);
      await this.#copy(`${base}${fragment}`, base ? "The link is copied." : ONLY_FRAGMENT);
    } catch (error) {
      if (!(error instanceof LinkError)) throw error;
      notices.show(error.message, "problem");
    }
  }

  /** What a reader of this view must know. The colour scheme is one's own; modes that were not used have no state. */
  #state() {
    const isShared = ([name, value]) => name !== "scheme" && name !== "sources" && value !== null;
    return Object.fromEntries(Object.entries(this.#context.store.get()).filter(isShared));
  }

  /** The hash of each chosen tokenizer, and how it was trained. */
  async #sources() {
    const { store, tokenizers } = this.#context;
    const known = store.get().tokenizers.map(async (name) => [name, { hash: await tokenizers.fingerprint(name), training: tokenizers.training(name) }]);
    return Object.fromEntries(await Promise.all(known));
  }

  /** Saves the page as it came, with its present state and tokenizers. It needs no server, and requests nothing. */
  #saveView() {
    const { data, skeleton, tokenizers } = this.#context;
    const page = skeleton.cloneNode(true);
    const write = (id, value) => {
      page.querySelector(`#${id}`).textContent = JSON.stringify(value).replaceAll("<", "\\u003c");
    };
    const origins = tokenizers.origins();
    const withChat = origins.map(({ name }) => name).filter((name) => tokenizers.hasChat(name));
    const ownChats = Object.fromEntries(withChat.map((name) => [name, data.ownChats[name] ?? null]));
    write("data", { ...data, server: false, ownChats, state: this.#state() });
    write("tokenizers", origins);
    const policy = page.querySelector("meta[http-equiv]");
    policy.content = policy.content.replace("connect-src 'self'", "connect-src 'none'");
    downloadFile("piecewise.html", `<!DOCTYPE html>\n${page.outerHTML}`, "text/html");
  }

  async #copyIds() {
    const shown = this.#tokens();
    if (!shown) return;
    const { length } = shown.ids;
    await this.#copy(`[${Array.from(shown.ids).join(", ")}]`, `${countNoun(length, "id")} ${length === 1 ? "is" : "are"} copied.`);
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
    if (await copyToClipboard(text)) notices.show(done);
    else notices.show("The browser does not let the page copy.", "problem");
  }
}
