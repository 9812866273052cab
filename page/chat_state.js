// The state of the chat mode: plain JSON, which a link carries. A stranger may have written it.
import { isObject } from "./link.js";

/**
 * @typedef {{messages: import("./chat_templates.js").ChatMessage[], example: string, template: string,
 *   tools: string, thinking: "" | "on" | "off", prompt: boolean, continues: boolean, marksAssistant: boolean, addsTokens: boolean}} ChatState
 *   `template` is "" for the tokenizer's own. `example` names the example that the messages are; "" after an edit.
 *   `addsTokens`: add the template's control tokens to a vocabulary without them.
 */

const MAX_MESSAGES = 1_000;
const FLAGS = ["prompt", "continues", "marksAssistant", "addsTokens"];

/** Pasted text is not a list of messages; the error's message says why. */
export class MessagesError extends Error {}

/**
 * Takes the known fields of a value, and defaults for the others.
 * @param {unknown} value
 * @returns {ChatState}
 */
export function checkedChat(value) {
  const state = {
    messages: [],
    example: "plain",
    template: "",
    tools: "",
    thinking: "",
    prompt: true,
    continues: false,
    marksAssistant: false,
    addsTokens: false,
  };
  if (!isObject(value)) return state;
  const isMessage = (each) => isObject(each) && typeof each.role === "string" && typeof each.content === "string";
  if (Array.isArray(value.messages)) {
    const messages = value.messages.filter(isMessage).slice(0, MAX_MESSAGES);
    state.messages = messages;
    state.example = "";
  }
  for (const name of ["example", "template", "tools", "thinking"]) if (typeof value[name] === "string") state[name] = value[name];
  for (const name of FLAGS) if (typeof value[name] === "boolean") state[name] = value[name];
  return state;
}

/**
 * Writes messages as JSON, a message a line.
 * @param {import("./chat_templates.js").ChatMessage[]} messages
 * @returns {string}
 */
export function messagesToJson(messages) {
  const lines = messages.map((message) => `  ${JSON.stringify(message)}`);
  return lines.length === 0 ? "[]" : `[\n${lines.join(",\n")}\n]`;
}

/**
 * Reads messages: a list of objects with `role` and `content`, or an object with such `messages`.
 * A content is a text or a list of text parts. Other fields, such as `tool_calls`, are for the model's own template.
 * @param {string} json
 * @returns {import("./chat_templates.js").ChatMessage[]}
 * @throws {MessagesError}
 */
export function messagesFromJson(json) {
  let value;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new MessagesError(`This is not JSON: ${error.message}`);
  }
  const list = isObject(value) ? value.messages : value;
  if (!Array.isArray(list)) {
    throw new MessagesError("This is neither a list of messages nor an object with “messages”.");
  }
  if (list.length > MAX_MESSAGES) throw new MessagesError(`The page shows at most ${MAX_MESSAGES} messages.`);
  return list.map(messageFrom);
}

function messageFrom(value, number) {
  if (!isObject(value) || typeof value.role !== "string") {
    throw new MessagesError(`Message ${number} has no “role” that is a text.`);
  }
  const parts = Array.isArray(value.content) ? value.content : [value.content ?? (value.tool_calls ? "" : value.content)];
  const texts = parts.map((part) => (isObject(part) && part.type === "text" ? part.text : part));
  if (!texts.every((text) => typeof text === "string")) {
    throw new MessagesError(`The content of message ${number} is neither a text nor a list of text parts.`);
  }
  return { ...value, content: texts.join("") };
}
