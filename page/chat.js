// The chat mode: an editor of messages, the conversation as a model reads it, and who can forge what.
import { analyseChat, assistantMask, encodeRendered } from "./chat_analysis.js";
import { createChatEditor } from "./chat_editor.js";
import { chatExamples, EXAMPLE_TOOLS } from "./chat_examples.js";
import { createForgeryPanel } from "./chat_forgery.js";
import { createMessagesPaste } from "./chat_paste.js";
import { createChatResult } from "./chat_result.js";
import { checkedChat, messagesToJson } from "./chat_state.js";
import { chatControlTokens, ChatRenderError, missingControlTokens, renderChat } from "./chat_templates.js";
import { countMessageTokens } from "./chat_tokens.js";
import { ChatVocabulary } from "./chat_vocabulary.js";
import { measureWriters, writtenTokens } from "./chat_writers.js";
import { copyToClipboard, countNoun, make, makeSelect, makeSwitch } from "./dom.js";
import { textButton } from "./icons.js";
import { TokenizerError } from "./tokenizers.js";

// A pause in typing, in milliseconds, after which the conversation is encoded.
const TYPING_PAUSE = 20;

/**
 * Makes the chat mode.
 * @param {object} context what the page gives to its modes
 * @returns {{element: HTMLElement, enter: () => void, leave: () => void}}
 */
export function createChatMode(context) {
  const { client, store, tokenizers, announce } = context;
  const { templates, default: defaultName, openai, openaiIds } = context.data.chat;
  const roles = [...new Set(templates.flatMap((each) => ["system", ...Object.keys(each.roles ?? {})]))];

  let chat = checkedChat(store.get().chat);
  let isEntered = false;
  let isStale = true;
  let isDrawing = false;
  let timer = 0;
  const writers = new Map();

  const picker = make("select", { class: "select small", onchange: () => chooseTemplate(picker.value) });
  const examples = make("select", { class: "select small", "aria-label": "Example", onchange: () => chooseExample(examples.value) });
  const flags = {
    prompt: flagSwitch("Generation prompt", "prompt"),
    continues: flagSwitch("Continue the final message", "continues"),
    marksAssistant: flagSwitch("Assistant’s tokens", "marksAssistant"),
    addsTokens: flagSwitch("Add the tokens here", "addsTokens"),
  };
  const tools = make("textarea", {
    class: "field chat-paste-field", rows: 4, spellcheck: "false", "aria-label": "Tools as JSON",
    placeholder: '[{"type": "function", "function": {"name": "weather", "parameters": {}}}]', oninput: () => change({ tools: tools.value }),
  });
  const thinking = makeSelect(
    { class: "select small", onchange: () => change({ thinking: thinking.value }) },
    [["", "by default"], "on", "off"],
  );
  const own = make("details", { class: "chat-own" }, make("summary", {}, "Tools and reasoning"), tools,
    make("label", { class: "chat-label" }, make("span", {}, "Reasoning"), thinking));
  const idsSwitch = makeSwitch("Ids", store.get().showsIds, (isOn) => store.set({ showsIds: isOn }));
  const editor = createChatEditor({ announce, roles, changed: (messages) => change({ messages, example: "" }) });
  const paste = createMessagesPaste((messages) => {
    change({ messages, example: "" });
    editor.show(messages);
    announce(`${countNoun(messages.length, "message")} pasted.`);
  });
  const result = createChatResult({ switches: [flags.marksAssistant, idsSwitch], addsSwitch: flags.addsTokens });
  const forgery = createForgeryPanel();
  const copyJson = copyButton("Copy JSON", () => messagesToJson(chat.messages), "Messages copied as JSON.");
  const copyIds = copyButton("Copy ids", () => JSON.stringify(Array.from(result.ids() ?? [])), "Ids copied.");
  const copyText = copyButton("Copy text", () => result.text(), "Rendered text copied.");
  const options = make(
    "div",
    { class: "chat-options" },
    make("label", { class: "chat-label" }, make("span", {}, "Template"), picker),
    flags.prompt,
    flags.continues,
  );
  const element = make(
    "div",
    { class: "chat-mode", "aria-busy": "false" },
    panel("editor", "Conversation", [examples], options, editor.element, own, paste),
    panel("result", "What the model reads", [copyJson, copyIds, copyText], result.element),
    panel("forgery", "Who can forge what", [], forgery.element),
  );

  store.subscribe((state, before) => {
    if (state.chat !== before.chat && state.chat !== chat) {
      chat = checkedChat(state.chat);
      restore();
    } else if (["showsIds", "showsInvisible", "price"].some((name) => state[name] !== before[name])) {
      refresh();
    }
  });
  tokenizers.subscribe(() => {
    followExample();
    refresh();
  });
  restore();

  function panel(name, title, actions, ...body) {
    const id = `chat-${name}-title`;
    const heading = make(
      "div",
      { class: "panel-heading" },
      make("h2", { class: "panel-title", id }, title),
      make("span", { class: "panel-actions" }, ...actions),
    );
    const content = make("div", { class: "panel-body" }, ...body);
    return make("section", { class: `panel chat-panel-${name}`, "aria-labelledby": id }, heading, content);
  }

  /** A switch for a flag of the state. */
  function flagSwitch(label, name) {
    return makeSwitch(label, chat[name], (isOn) => change({ [name]: isOn }));
  }

  function copyButton(label, text, done) {
    const copy = async () => announce(await copyToClipboard(text()) ? done : "The browser does not let the page copy.");
    return textButton("copy", label, copy, { class: "plain" });
  }

  /** Changes the state, keeps it in the store, and draws what follows from it. */
  function change(patch) {
    chat = { ...chat, ...patch };
    store.set({ chat });
    examples.value = chat.example;
    window.clearTimeout(timer);
    element.ariaBusy = "true";
    timer = window.setTimeout(refresh, TYPING_PAUSE);
  }

  /** Shows a state that a link or the start of the page brings. */
  function restore() {
    for (const [name, flag] of Object.entries(flags)) flag.control.checked = chat[name];
    [tools.value, thinking.value] = [chat.tools, chat.thinking];
    followExample();
    editor.show(chat.messages);
    refresh();
  }

  function chooseTemplate(name) {
    change({ template: name });
    followExample();
  }

  function chooseExample(name) {
    const kept = chat.tools === EXAMPLE_TOOLS ? "" : chat.tools;
    change({ example: name, tools: name === "call" ? EXAMPLE_TOOLS : kept });
    tools.value = chat.tools;
    followExample();
    announce(`${countNoun(chat.messages.length, "message")} of the example shown.`);
  }

  /** Writes the chosen example anew: its attacks use the markup of the template. */
  function followExample() {
    fillPicker();
    const known = chatExamples(builtIn(), context.data.chat.sample, isOwn());
    const example = known.find((each) => each.name === chat.example) ?? (chat.example === "" ? null : known[0]);
    if (example !== null && JSON.stringify(example.messages) !== JSON.stringify(chat.messages)) {
      chat = { ...chat, messages: example.messages, example: example.name };
      editor.show(chat.messages);
    }
    const own = make("option", { value: "", disabled: true }, "Your messages");
    examples.replaceChildren(...known.map(({ name, label }) => make("option", { value: name }, label)), own);
    examples.value = chat.example;
  }

  function fillPicker() {
    const automatic = make("option", { value: "" }, runsOwn() ? "The model’s own" : `Automatic (${ownTemplate().name})`);
    own.hidden = !isOwn();
    picker.replaceChildren(automatic, ...templates.map(({ name }) => make("option", { value: name }, name)));
    picker.value = templates.some((each) => each.name === chat.template) ? chat.template : "";
  }

  /** Whether the local server can run the template that the model brings. */
  function runsOwn() {
    return context.data.server && tokenizers.hasChat(tokenizers.selected()?.name);
  }

  function isOwn() {
    return runsOwn() && !templates.some((each) => each.name === chat.template);
  }

  function builtIn() {
    return templates.find((each) => each.name === chat.template) ?? ownTemplate();
  }

  /** The first template whose control tokens the selected tokenizer has or OpenAI reserves; else the package's default. */
  function ownTemplate() {
    const added = addedTexts(tokenizers.selected());
    const fits = (each) => chatControlTokens(each).length > 0 && missingControlTokens(each, added).length === 0;
    const name = Object.keys(reservedIds(tokenizers.selected())).length > 0 ? openai : defaultName;
    return templates.find(fits) ?? templates.find((each) => each.name === name);
  }

  /** The ids that OpenAI reserves for control tokens of chats, which its rank files lack. */
  function reservedIds(tokenizer) {
    const end = tokenizer?.info.addedTokens.find(({ content }) => content === "<|endofprompt|>");
    return openaiIds[end?.id] ?? {};
  }

  function addedTexts(tokenizer) {
    return new Set((tokenizer?.info.addedTokens ?? []).map((token) => token.content));
  }

  /** Draws the state, once at a time: a change during a drawing is drawn after it. */
  async function refresh() {
    window.clearTimeout(timer);
    isStale = true;
    idsSwitch.control.checked = store.get().showsIds;
    if (!isEntered || isDrawing) return;
    isDrawing = true;
    element.ariaBusy = "true";
    try {
      while (isStale && isEntered) {
        isStale = false;
        await draw();
      }
    } catch (error) {
      showProblem(error.message);
    } finally {
      isDrawing = false;
      element.ariaBusy = "false";
    }
  }

  /** Draws the state. A change meanwhile makes it stale; then the drawing stops. */
  async function draw() {
    const tokenizer = tokenizers.selected();
    const { messages, marksAssistant } = chat;
    if (tokenizer === null) {
      showProblem("Choose a tokenizer to see the tokens.");
      return;
    }
    let [chosen, rendered] = [builtIn(), null];
    try {
      rendered = isOwn() ? await renderOwn(tokenizer) : renderChat(chosen, messages, chat);
    } catch (error) {
      if (!(error instanceof ChatRenderError || error instanceof TokenizerError)) throw error;
      if (!isStale) showProblem(error.message);
      return;
    }
    if (isStale) return;
    if (isOwn()) chosen = { ...rendered.template, kind: "turns", name: "the model’s own", roles: {}, isOwn: true };
    const vocabulary = vocabularyOf(tokenizer, chosen);
    const analysis = await analyseChat(vocabulary, chosen, messages, rendered);
    if (isStale) return;
    showResult(tokenizer, chosen, vocabulary, analysis, marksAssistant);
    if (chosen.isOwn) {
      forgery.showOwn();
      return;
    }
    const { forgeries } = analysis;
    const written = await writersOf(vocabulary, chosen, writtenTokens(chosen, forgeries));
    if (isStale) return;
    const missing = missingControlTokens(chosen, vocabulary.addedTexts);
    forgery.show({ template: chosen, messages, missing, forgeries, writers: written });
  }

  /** The conversation as the package renders it with the model's own template, on the local server. */
  function renderOwn({ name }) {
    const { messages, prompt, continues, thinking: reasons } = chat;
    let described;
    try {
      described = JSON.parse(chat.tools.trim() || "[]");
    } catch (error) {
      throw new ChatRenderError(`The tools are not JSON: ${error.message}`);
    }
    const variables = reasons === "" ? {} : { enable_thinking: reasons === "on" };
    return tokenizers.renderChat(name, { messages, prompt, continues, tools: described, variables });
  }

  /** The vocabulary of a tokenizer, with OpenAI's reserved tokens, and the others of the template if the reader asks for them. */
  function vocabularyOf(tokenizer, chosen) {
    const reserved = reservedIds(tokenizer);
    const missing = missingControlTokens(chosen, addedTexts(tokenizer)).filter((text) => chat.addsTokens || text in reserved);
    return new ChatVocabulary(client, tokenizer, missing, reserved);
  }

  function showResult(tokenizer, chosen, vocabulary, analysis, marksAssistant) {
    const { messages, pieces, ranges, rendered } = analysis;
    const { mask, note } = marksAssistant ? assistantMask(analysis) : { mask: null, note: "" };
    const { showsIds } = store.get();
    const chip = ({ bytes, id, flags: bits }) => context.chip({ bytes, flags: bits, id: showsIds ? id : undefined });
    const reserved = reservedIds(tokenizer);
    const missing = missingControlTokens(chosen, addedTexts(tokenizer)).filter((text) => !(text in reserved));
    const added = vocabulary.addedTokens.filter(({ content }) => missing.includes(content));
    if (tokenizers.hasChat(tokenizer.name) && !chosen.isOwn) {
      const isSample = chat.example === "plain" && chat.prompt && !chat.continues;
      result.showBuiltIn(chosen.name, context.data.server, isSample ? context.data.ownChats[tokenizer.name] : null);
    } else result.showVocabulary(missing, added, chat.template !== "");
    result.show({ ...analysis, mask }, chip, note, store.get().price);
    copyIds.disabled = copyText.disabled = false;
    const present = new Set([...pieces, ...rendered.turns].map(({ message }) => message));
    const counts = countMessageTokens(messages.length, rendered, pieces, ranges);
    editor.showCounts(counts.map((each, number) => (present.has(number) ? each : null)));
  }

  /** The writers in one vocabulary, of one template and set of tokens, never change. */
  function writersOf(vocabulary, chosen, texts) {
    const name = JSON.stringify([vocabulary.key, vocabulary.addedTokens.length, chosen.name, texts]);
    if (!writers.has(name)) {
      const encodeString = (text) => vocabulary.encodeString(chosen, text);
      const encodeSegments = (rendered) => encodeRendered(vocabulary, chosen, rendered);
      const measured = measureWriters(chosen, texts, vocabulary.addedTokens, encodeString, encodeSegments);
      writers.set(name, measured);
      measured.catch(() => writers.delete(name));
    }
    return writers.get(name);
  }

  function showProblem(message) {
    result.showProblem(message);
    copyIds.disabled = copyText.disabled = true;
    editor.showCounts(null);
    forgery.clear();
  }

  return {
    element,
    enter() {
      isEntered = true;
      if (isStale) refresh();
    },
    leave() {
      isEntered = false;
    },
  };
}
