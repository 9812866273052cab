/** Piecewise: starts the core, and shows the modes. */

import { createAllMode } from "./all.js";
import { chipMaker } from "./chips.js";
import { createChatMode } from "./chat.js";
import { startClient } from "./core_client.js";
import { make, roveFocus } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { brandMark, icon, iconButton } from "./icons.js";
import { fromFragment, LinkError } from "./link.js";
import { Notices } from "./notices.js";
import { Picker } from "./picker.js";
import { ShareMenu } from "./share.js";
import { checkedState, INITIAL_STATE, keptPreferences, Store } from "./store.js";
import { createTextMode } from "./text_mode.js";
import { TokenizerError, Tokenizers } from "./tokenizers.js";
import { createTrainingMode } from "./training.js";

const SCHEMES = ["auto", "light", "dark"];
const SAMPLE_VOCABULARY = 400;
const SAMPLE_PATTERN = "gpt2";
const SAMPLE_NAME = "trained on the examples";

/** Reads a block of the page. */
function block(id) {
  return document.getElementById(id).textContent;
}

async function start() {
  // As it came, for a saved page.
  const skeleton = document.documentElement.cloneNode(true);
  const data = JSON.parse(block("data"));
  const embedded = JSON.parse(block("tokenizers"));
  const notices = new Notices();
  document.body.append(notices.element);
  document.querySelector(".brand-mark").append(brandMark());
  const store = new Store({
    ...INITIAL_STATE,
    ...initialState(data, embedded),
    ...keptPreferences(),
    ...checkedState(data.state),
    ...await linkedState(notices),
  });
  applyScheme(store);
  const client = await startClient(block("worker"), block("wasm"));
  const tokenizers = new Tokenizers(client, store, data, embedded);
  const announcer = document.getElementById("announcer");
  const context = {
    client,
    store,
    tokenizers,
    data,
    skeleton,
    notices,
    announce: (text) => {
      announcer.textContent = text;
    },
    chip: chipMaker(store),
  };
  await startTokenizers(context);
  showModes(context);
  addEventListener("hashchange", () => void followLink(context));
}

/** The state that the page's data asks for. */
function initialState(data, embedded) {
  return {
    text: data.text || EXAMPLES[0].text,
    tokenizers: embedded.slice(0, 2).map(({ name }) => name),
    readsSpecial: data.special !== "none",
  };
}

async function linkedState(notices) {
  try {
    return checkedState(await fromFragment(location.hash));
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    notices.show(error.message, "problem");
    return {};
  }
}

/** A link that is opened in the page that is already there changes its state. */
async function followLink(context) {
  const state = await linkedState(context.notices);
  if (Object.keys(state).length === 0) return;
  context.store.set({ sources: null, ...state, tokenizers: context.store.get().tokenizers });
  for (const [place, name] of (state.tokenizers || []).entries()) await choose(context, place, name);
}

/** Loads the tokenizers of the state; without any, trains a small one on the sample text. */
async function startTokenizers(context) {
  const { store, tokenizers } = context;
  const names = store.get().tokenizers;
  store.set({ tokenizers: [] });
  for (const [place, name] of names.entries()) await choose(context, place, name);
  if (tokenizers.selected() !== null) return;
  const first = tokenizers.choices().find(({ source }) => source === "embedded");
  if (first) await choose(context, 0, first.name);
  else await choose(context, 0, SAMPLE_NAME);
}

async function choose(context, place, name) {
  const { store, tokenizers, notices } = context;
  const sources = store.get().sources ?? {};
  const { hash, training } = Object.hasOwn(sources, name) ? sources[name] : {};
  try {
    if (name === SAMPLE_NAME) describeSample(context);
    else if (training) tokenizers.addTraining(name, training);
    // A first tokenizer that is missing leaves its place to the second.
    await tokenizers.choose(place === 1 && tokenizers.selected() === null ? 0 : place, name);
    if (hash && hash !== await tokenizers.fingerprint(name)) {
      notices.show(`The link was made with another tokenizer of the name ${name}, so the tokens may differ.`, "problem");
    }
  } catch (error) {
    if (!(error instanceof TokenizerError)) throw error;
    notices.show(error.message, "problem");
  }
}

function describeSample({ tokenizers, data }) {
  const pattern = data.patterns.find(({ name }) => name === SAMPLE_PATTERN).patterns[0];
  const text = EXAMPLES.map((example) => example.text).join("\n");
  tokenizers.addTraining(SAMPLE_NAME, [text, { vocabSize: SAMPLE_VOCABULARY, pattern }]);
}

/** Makes the header, the tabs and the modes. */
function showModes(context) {
  const { store } = context;
  const text = createTextMode(context);
  const picker = new Picker(context, (file) => void text.openText(file));
  const modes = [
    { name: "text", label: "Text", mode: text },
    { name: "all", label: "Compare all", mode: createAllMode(context, () => picker.open(null)) },
    { name: "training", label: "Training", mode: createTrainingMode(context) },
    { name: "chat", label: "Chat", mode: createChatMode(context) },
  ];
  const share = new ShareMenu(context, text);
  document.querySelector(".header-tokenizers").append(picker.buttons);
  document.querySelector(".header-actions").append(share.button, schemeButton(context), share.menu);
  document.body.append(picker.dialog, picker.overlay);
  const main = document.getElementById("main");
  main.replaceChildren();
  const tabs = modes.map(({ name, label, mode }) => {
    mode.element.id = `mode-${name}`;
    mode.element.setAttribute("role", "tabpanel");
    mode.element.setAttribute("aria-labelledby", `tab-${name}`);
    mode.element.hidden = true;
    main.append(mode.element);
    return make("button", {
      type: "button",
      class: "tab",
      role: "tab",
      id: `tab-${name}`,
      "aria-controls": `mode-${name}`,
      onclick: () => store.set({ mode: name }),
    }, label);
  });
  const list = document.querySelector(".tabs");
  list.append(...tabs);
  roveFocus(list, () => tabs, (tab) => tab.click());
  let entered = null;
  const show = (name) => {
    entered?.mode.leave();
    entered = modes.find((each) => each.name === name) || modes[0];
    modes.forEach((each, at) => {
      const isShown = each === entered;
      each.mode.element.hidden = !isShown;
      tabs[at].setAttribute("aria-selected", String(isShown));
      tabs[at].tabIndex = isShown ? 0 : -1;
    });
    entered.mode.enter();
  };
  store.subscribe((state, before) => {
    if (state.mode !== before.mode) show(state.mode);
  });
  show(store.get().mode);
}

function schemeButton({ store }) {
  const next = () => SCHEMES[(SCHEMES.indexOf(store.get().scheme) + 1) % SCHEMES.length];
  const button = iconButton("auto", "", () => store.set({ scheme: next() }));
  store.follow(({ scheme }) => {
    button.replaceChildren(icon(scheme));
    button.title = button.ariaLabel = `Colour scheme: ${scheme}`;
  });
  return button;
}

function applyScheme(store) {
  store.follow(({ scheme }) => {
    document.documentElement.dataset.scheme = scheme;
  });
}

start().catch((error) => {
  const message = make(
    "p",
    { class: "problem start-message", role: "alert" },
    `The page cannot start: ${error.message}`,
  );
  document.getElementById("main").replaceChildren(message);
  throw error;
});
