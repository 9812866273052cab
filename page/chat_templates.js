// Renders a conversation with a built-in template to segments, as bpe_tokenizer.chat does.
// The templates are those of bpe_tokenizer/chat/builtin_templates.json.

/**
 * @typedef {{role: string, content: string}} ChatMessage
 * @typedef {{text: string, message: number | null}} ChatSegment Content of a message; markup if `message` is null.
 * @typedef {{kind: "start" | "message" | "prompt" | "end", role: string, message: number | null,
 *   start: number, end: number}} ChatTurn The characters that a template writes for a message, or around all messages.
 * @typedef {{text: string, segments: ChatSegment[], generated: [number, number][], turns: ChatTurn[]}} RenderedChat
 *   Positions are UTF-16 code units of `text`. `generated` are the spans that the assistant writes.
 */

// The roles of a template for a single instruction.
const INSTRUCTION_ROLES = ["system", "user", "assistant"];
// The white space that Python's str.strip() removes, which is not that of String.trim().
const SPACE = "\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const SPACE_AT_ENDS = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "g");

/** The template rejects the conversation. */
export class ChatRenderError extends Error {}

/**
 * Renders a conversation.
 * @param {object} template
 * @param {ChatMessage[]} messages
 * @param {{prompt?: boolean, continues?: boolean}} options `prompt`: end with the generation prompt.
 *   `continues`: leave the final message open; then there is no generation prompt.
 * @returns {RenderedChat}
 * @throws {ChatRenderError}
 */
export function renderChat(template, messages, { prompt = true, continues = false } = {}) {
  if (messages.length === 0) {
    throw new ChatRenderError("There are no messages. Add one.");
  }
  if (continues && messages.at(-1).role === "system") {
    throw new ChatRenderError("The final message is a system message, which no model continues.");
  }
  const written = new ChatWriter();
  const write = template.kind === "turns" ? writeTurns : writeInstruction;
  write(template, written, messages, prompt && !continues, continues);
  return { text: written.text, segments: written.segments, generated: written.generated, turns: written.turns };
}

/**
 * Returns the roles that a template knows, sorted.
 * @param {object} template
 * @returns {string[]}
 */
export function chatRoles(template) {
  const roles = template.kind === "turns" ? [...Object.keys(template.roles), "system"] : INSTRUCTION_ROLES;
  return [...new Set(roles)].sort();
}

/**
 * Returns the control tokens of a template.
 * @param {object} template
 * @returns {string[]}
 */
export function chatControlTokens(template) {
  return template.control_tokens ?? [];
}

/**
 * Returns the control tokens of a template that a vocabulary lacks.
 * @param {object} template
 * @param {Set<string>} added the added tokens of the vocabulary
 * @returns {string[]}
 */
export function missingControlTokens(template, added) {
  return chatControlTokens(template).filter((text) => !added.has(text));
}

/**
 * Returns the spans of the assistant's text, which a loss covers.
 * @param {RenderedChat} rendered
 * @param {ChatMessage[]} messages
 * @returns {[number, number][]}
 * @throws {ChatRenderError} the mask would be empty although the assistant has messages
 */
export function assistantSpans(rendered, messages) {
  const spans = rendered.generated.filter(([start, end]) => start < end);
  const count = messages.filter((message) => message.role === "assistant").length;
  if (count > 0 && spans.length === 0) {
    throw new ChatRenderError("The template leaves out all messages of the assistant.");
  }
  return spans;
}

class ChatWriter {
  constructor() {
    this.text = "";
    this.segments = [];
    this.generated = [];
    this.turns = [];
  }

  markup(text) {
    this.write(text, null);
  }

  content(message, text) {
    this.write(text, message);
  }

  write(text, message) {
    if (!text) return;
    this.text += text;
    const last = this.segments.at(-1);
    if (last !== undefined && last.message === message) last.text += text;
    else this.segments.push({ text, message });
  }

  // Calls `write`, and records what it writes as a turn.
  turn(kind, role, message, write) {
    const start = this.text.length;
    write();
    if (this.text.length > start) this.turns.push({ kind, role, message, start, end: this.text.length });
  }

  // Calls `write`, and records what it writes as the assistant's.
  generate(write) {
    const start = this.text.length;
    write();
    this.generated.push([start, this.text.length]);
  }
}

function writeTurns(template, written, messages, prompt, continues) {
  const { roles } = template;
  const known = chatRoles(template);
  written.turn("start", "", null, () => written.markup(template.begin));
  let systemTexts = [];
  messages.forEach((message, number) => {
    const { role, content } = message;
    checkRole(template, known, number, role);
    if (role === "system" && !Object.hasOwn(roles, role)) {
      systemTexts.push([number, content]);
    } else if (content !== "" || !(role === "system" && template.skips_empty_system)) {
      const isLast = number === messages.length - 1;
      const markup = isLast ? finalMarkup(template, role, prompt, continues) : roles[role];
      const before = role === "user" ? systemTexts : [];
      written.turn("message", role, number, () => writeTurn(template, written, message, markup, number, before));
      if (role === "user") systemTexts = [];
    }
  });
  if (systemTexts.length > 0) {
    throw new ChatRenderError(
      `The template ${template.name} puts message ${systemTexts[0][0] + 1} (system) into the user message after it. ` +
        "Add a user message.",
    );
  }
  if (prompt) written.turn("prompt", "assistant", null, () => written.markup(template.reply));
  else if (!continues) written.turn("end", "", null, () => written.markup(template.end));
}

/** Returns the markup of the final message. */
function finalMarkup(template, role, prompt, continues) {
  const markup = template.roles[role];
  if (continues) return { ...markup, end: "", after: "" };
  const stop = role === "assistant" && !prompt ? template.stop_tokens?.[0] : undefined;
  return stop === undefined ? markup : { ...markup, end: stop };
}

function writeTurn(template, written, { role, content }, markup, number, systemTexts) {
  const body = () => {
    written.markup(markup.lead);
    for (const [place, text] of systemTexts) {
      written.content(place, text);
      written.markup(text === "" ? "" : "\n\n");
    }
    written.content(number, template.strips && role !== "system" ? content.replace(SPACE_AT_ENDS, "") : content);
    written.markup(markup.end);
  };
  written.markup(markup.before);
  if (role === "assistant") written.generate(body);
  else body();
  written.markup(markup.after);
}

function writeInstruction(template, written, messages, prompt, continues) {
  const numbers = (role) => [...messages.keys()].filter((number) => messages[number].role === role);
  messages.forEach(({ role }, number) => checkRole(template, chatRoles(template), number, role));
  const instruction = numbers("user").at(-1);
  if (instruction === undefined) {
    throw new ChatRenderError(`The template ${template.name} needs a user message, which is the instruction.`);
  }
  for (const number of numbers("system").filter((each) => messages[each].content !== "")) {
    written.turn("message", "system", number, () => {
      written.content(number, messages[number].content);
      written.markup(template.separator);
    });
  }
  const open = continues && instruction === messages.length - 1;
  written.turn("message", "user", instruction, () => {
    written.markup(template.instruction);
    written.content(instruction, messages[instruction].content);
    written.markup(open ? "" : template.separator);
  });
  if (open) return;
  if (prompt) {
    written.turn("prompt", "assistant", null, () => written.markup(template.response));
    return;
  }
  const answers = numbers("assistant").filter((number) => number > instruction);
  for (const number of answers) {
    written.turn("message", "assistant", number, () => {
      written.markup(number === answers[0] ? template.response : template.separator + template.response);
      written.generate(() => written.content(number, messages[number].content));
    });
  }
}

function checkRole(template, roles, number, role) {
  if (roles.includes(role)) return;
  throw new ChatRenderError(
    `The template ${template.name} has no role “${role.slice(0, 80)}” (message ${number + 1}). Its roles: ${roles.join(", ")}.`,
  );
}
