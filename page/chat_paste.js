// Takes messages that are pasted as JSON.
import { messagesFromJson, MessagesError } from "./chat_state.js";
import { make } from "./dom.js";

const EXAMPLE = '[{"role": "user", "content": "Hello"}]';

/**
 * @param {(messages: import("./chat_templates.js").ChatMessage[]) => void} take
 * @returns {HTMLElement}
 */
export function createMessagesPaste(take) {
  const text = make("textarea", {
    class: "field chat-paste-field",
    rows: "5",
    spellcheck: "false",
    "aria-label": "Messages as JSON",
    placeholder: EXAMPLE,
  });
  const problem = make("p", { class: "problem", role: "alert" });
  const use = () => {
    problem.textContent = "";
    try {
      take(messagesFromJson(text.value));
    } catch (error) {
      if (!(error instanceof MessagesError)) throw error;
      problem.textContent = error.message;
    }
  };
  const button = make("button", { type: "button", class: "button small", onclick: use }, "Use these messages");
  return make("details", { class: "chat-paste" }, make("summary", {}, "Paste messages as JSON"), text, problem, button);
}
