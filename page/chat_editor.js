// The editor of a conversation: a list of messages that can be added, removed and moved.
import { countNoun, make, makeSelect } from "./dom.js";
import { icon, iconButton } from "./icons.js";

const LONG_CONTENT = 5_000;

/**
 * @typedef {import("./chat_templates.js").ChatMessage} ChatMessage
 * @typedef {{content: number, markup: number} | null} ChatCount null: the template leaves the message out
 */

/**
 * @param {{announce: (text: string) => void, roles: string[],
 *   changed: (messages: ChatMessage[]) => void}} options `roles` are those that a message can have
 * @returns {{element: HTMLElement, show: (messages: ChatMessage[]) => void,
 *   showCounts: (counts: ChatCount[] | null) => void}}
 */
export function createChatEditor({ announce, roles, changed }) {
  /** @type {ChatMessage[]} */
  let messages = [];
  const list = make("ol", { class: "chat-messages", "aria-label": "Messages" });
  const append = () => insert(messages.length);
  const add = make("button", { type: "button", class: "button chat-add", onclick: append }, icon("plus"), "Add a message");
  const keys = make(
    "p",
    { class: "chat-keys" },
    make("kbd", {}, "Alt ↑ ↓"),
    " in a content moves its message, ",
    make("kbd", {}, "Ctrl Enter"),
    " adds one after it.",
  );
  const element = make("div", { class: "chat-editor" }, list, add, keys);

  function change(next) {
    messages = next;
    changed(messages);
  }

  function setMessage(number, patch) {
    change(messages.map((message, each) => (each === number ? { ...message, ...patch } : message)));
  }

  function insert(number) {
    const previous = messages[number - 1];
    const role = previous !== undefined && previous.role === "user" ? "assistant" : "user";
    change([...messages.slice(0, number), { role, content: "" }, ...messages.slice(number)]);
    draw();
    field(number, "textarea").focus();
    announce(`Message ${number + 1} added.`);
  }

  function remove(number) {
    change(messages.filter((_, each) => each !== number));
    draw();
    if (messages.length === 0) add.focus();
    else field(Math.min(number, messages.length - 1), ".chat-remove").focus();
    announce(`Message ${number + 1} removed. ${countNoun(messages.length, "message")} left.`);
  }

  function move(number, to, focused) {
    if (to < 0 || to >= messages.length) return;
    const next = messages.filter((_, each) => each !== number);
    next.splice(to, 0, messages[number]);
    change(next);
    const { selectionStart, selectionEnd } = field(number, "textarea");
    draw();
    const target = field(to, focused);
    // At an end of the list, the button of this direction is disabled.
    if (target.disabled) field(to, focused === ".chat-up" ? ".chat-down" : ".chat-up").focus();
    else target.focus();
    if (focused === "textarea") target.setSelectionRange(selectionStart, selectionEnd);
    announce(`Message moved to place ${to + 1} of ${messages.length}.`);
  }

  function field(number, selector) {
    return list.children[number].querySelector(selector);
  }

  function draw() {
    list.replaceChildren(...messages.map(messageItem));
  }

  function messageItem({ role, content }, number) {
    const name = `message ${number + 1}`;
    const isLast = number === messages.length - 1;
    const known = roles.includes(role) ? roles : [...roles, role];
    const select = makeSelect({
      class: "select small chat-role", "aria-label": `Role of ${name}`, onchange: () => chooseRole(number, select.value),
    }, known.map((each) => [each, each === "" ? "(empty)" : each]));
    select.value = role;
    const text = make("textarea", {
      class: "chat-content-field", "aria-label": `Content of ${name}`, dir: "auto", rows: "1", spellcheck: "false",
      placeholder: "Content", oninput: () => { fitField(text); setMessage(number, { content: text.value }); },
      onkeydown: (event) => press(event, number),
    });
    text.value = content;
    fitField(text);
    const button = (action, label, sign, disabled, act) =>
      iconButton(sign, `${label} ${name}`, act, { class: `small chat-${action}`, title: label, disabled });
    return make(
      "li",
      { class: "chat-message", "data-role": role },
      make(
        "div",
        { class: "chat-message-head" },
        select,
        make("span", { class: "chat-message-count number" }),
        make(
          "span",
          { class: "chat-message-actions" },
          button("up", "Move up", "up", number === 0, () => move(number, number - 1, ".chat-up")),
          button("down", "Move down", "down", isLast, () => move(number, number + 1, ".chat-down")),
          button("remove", "Remove", "trash", false, () => remove(number)),
        ),
      ),
      text,
    );
  }

  function chooseRole(number, role) {
    list.children[number].dataset.role = role;
    setMessage(number, { role });
  }

  function press(event, number) {
    if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      move(number, event.key === "ArrowUp" ? number - 1 : number + 1, "textarea");
    } else if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      insert(number + 1);
    }
  }

  return {
    element,
    show(next) {
      messages = next;
      draw();
    },
    showCounts(counts) {
      [...list.children].forEach((item, number) => {
        const count = counts === null ? undefined : counts[number];
        item.classList.toggle("chat-left-out", count === null);
        item.title = count === null ? "The template leaves this message out." : "";
        item.querySelector(".chat-message-count").replaceChildren(...countLabel(count));
      });
    },
  };
}

/** A field grows with its text, but measuring a long text takes too long. */
function fitField(text) {
  text.classList.toggle("chat-long-field", text.value.length > LONG_CONTENT);
}

/** A count whose noun narrow screens leave out. */
function countLabel(count) {
  if (count === undefined) return [];
  if (count === null) return ["left out"];
  const [number, noun] = countNoun(count.content + count.markup, "token").split(" ");
  return [number, make("span", { class: "chat-message-noun" }, ` ${noun}`)];
}
