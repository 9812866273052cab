// “Who can forge what”: the conversation as one string next to the conversation as segments.
import { make } from "./dom.js";
import { icon } from "./icons.js";

// A turn is shown up to this length: its beginning and its end.
const HEAD_LENGTH = 280;
const TAIL_LENGTH = 80;
const LISTED = 6;
// Of a turn with more runs of text and marks, the first and the last ones are shown.
const RUNS = 24;
// A message can open any number of turns.
const TURNS = 12;
const LEAD =
  "Control tokens tell a model who speaks. Many libraries join the messages to one string and look for control " +
  "tokens in all of it. This package encodes segments and looks for them in the template’s own text only.";
const OWN =
  "That holds for the model’s own template too: no message becomes a control token. What one string would do is measured " +
  "with the built-in templates, which this page renders for every role: choose one under Template.";
const MARK_TITLES = {
  forged: "forged control token",
  imitated: "imitated markup",
  control: "control token",
  plain: "markup that is plain text",
};

/**
 * @typedef {{text: string, asString: string[], asSegments: string[], isPlain: boolean}} WriterRow
 *   The roles that can write a control token in each encoding. `isPlain`: the vocabulary has no token for it.
 */

/**
 * @returns {{element: HTMLElement, show: (result: {template: object,
 *   messages: import("./chat_templates.js").ChatMessage[], missing: string[],
 *   forgeries: import("./chat_reading.js").Forgery[], writers: {roles: string[], rows: WriterRow[]}}) => void, showOwn: () => void,
 *   clear: () => void}}
 */
export function createForgeryPanel() {
  const element = make("div", { class: "chat-forgery" });

  function verdict({ template, missing, forgeries, messages }) {
    const forged = forgeries.filter((each) => each.forged.length > 0);
    const imitated = forgeries.filter((each) => each.imitated.length > 0);
    if (template.kind === "instruction" || imitated.length > 0) {
      const reason = template.kind === "instruction"
        ? `The template ${template.name} has no control tokens. Its markup is plain text that anybody can write.`
        : `This tokenizer has no token for ${listed(missing)}. This markup is plain text here, so every message can ` +
          "imitate it.";
      return verdictBox("warn", "warning", `${reason} No encoding can prevent that.`);
    }
    const gap = missing.length === 0
      ? ""
      : ` This tokenizer has no token for ${listed(missing)}, so messages can imitate that markup.`;
    if (forged.length > 0) {
      const who = listed(forged.map(({ message }) => `message ${message + 1} (${messages[message].role})`));
      return verdictBox(gap === "" ? "good" : "warn", gap === "" ? "lock" : "warning",
        `As one string, ${who} would forge control tokens. As segments, the same text stays text.${gap}`);
    }
    if (gap !== "") return verdictBox("warn", "warning", gap.trim());
    const nothing = "No message holds a control token or markup of the template. Try one of the attacks.";
    return verdictBox("quiet", "lock", nothing);
  }

  function verdictBox(tone, sign, text) {
    return make("p", { class: `chat-verdict chat-tone-${tone}` }, icon(sign), make("span", {}, text));
  }

  function forgeryCase(forgery, messages) {
    const { message, forged, imitated } = forgery;
    const title = make("h3", { class: "chat-case-title" }, `Message ${message + 1} (${messages[message].role})`);
    const tone = forgery.leaked === 0 && imitated.length === 0 ? "good" : "danger";
    const imitation = `The message imitates ${listed(imitated)}. That markup is plain text.`;
    const columns = forged.length > 0
      ? [
        reading("As one string", stringResult(forgery), "danger", forgery.asString),
        reading("As segments (this package)", segmentResult(forgery), tone, forgery.asSegments),
      ]
      : [reading("In every encoding", imitation, "warn", forgery.asString)];
    return make("section", { class: "chat-case" }, title, make("div", { class: "chat-readings" }, ...columns));
  }

  function reading(title, result, tone, turns) {
    const shown = turns.filter(isShown);
    const sign = make("span", { class: `chat-ink-${tone}` }, icon(tone === "good" ? "check" : "warning"));
    return make(
      "div",
      { class: "chat-reading" },
      make("h4", { class: "chat-reading-title" }, title),
      make("p", { class: "chat-reading-result" }, sign, make("span", {}, result)),
      make("ol", { class: "chat-read-turns" }, ...shown.slice(0, TURNS).map(readTurn)),
      shown.length > TURNS ? make("p", { class: "quiet" }, `${shown.length - TURNS} more turns.`) : null,
    );
  }

  function readTurn(turn) {
    const role = turn.role === "" ? (turn.isKnown ? "outside of all turns" : "(no name)") : turn.role;
    const tag = turn.isForged ? make("span", { class: "chat-forged-tag" }, icon("warning"), "forged") : null;
    return make(
      "li",
      { class: `chat-read-turn${turn.isForged ? " chat-is-forged" : ""}`, "data-role": turn.isKnown ? turn.role : "" },
      make("div", { class: "chat-read-role" }, make("bdi", {}, role), tag),
      make("div", { class: "chat-read-text", dir: "auto" }, ...shownRuns(trimmedRuns(turn.runs)).map(readRun)),
    );
  }

  function readRun({ text, marker }) {
    if (marker === null) return make("span", {}, shortened(text));
    const kind = marker.isContent ? (marker.isToken ? "forged" : "imitated") : (marker.isToken ? "control" : "plain");
    const title = MARK_TITLES[kind];
    const spoken = make("span", { class: "visually-hidden" }, `${title}: `);
    return make("bdi", { class: `chat-mark chat-mark-${kind}`, title }, spoken, text);
  }

  return {
    element,
    show(result) {
      const cases = result.forgeries.slice(0, LISTED).map((each) => forgeryCase(each, result.messages));
      const others = result.forgeries.length - cases.length;
      const more = others > 0 ? make("p", { class: "quiet" }, `${others} more messages hold markup.`) : "";
      const lead = make("p", { class: "chat-lead" }, LEAD);
      element.replaceChildren(lead, verdict(result), ...cases, more, writersTable(result));
    },
    /** Says what holds for a model's own template, which only the local server runs, for the conversation as it is. */
    showOwn() {
      element.replaceChildren(make("p", { class: "chat-lead" }, LEAD), verdictBox("quiet", "lock", OWN));
    },
    clear() {
      element.replaceChildren();
    },
  };
}

function stringResult({ forged, asString }) {
  const names = asString
    .filter((turn) => turn.isForged)
    .map((turn) => `a forged ${turn.role === "" ? "nameless" : turn.role} turn`);
  const turns = [...new Set(names)];
  const control = `The message becomes the control ${forged.length === 1 ? "token" : "tokens"} ${listed(forged)}`;
  return turns.length === 0 ? `${control}.` : `${control}. The model reads ${listed(turns)}.`;
}

function segmentResult({ leaked, imitated }) {
  if (leaked > 0) return `The message becomes ${leaked} control tokens.`;
  const plain = "All of the message is text. It becomes no control token.";
  return imitated.length === 0 ? plain : `${plain} But it imitates ${listed(imitated)}.`;
}

/** The table of who can write which control token, measured with this tokenizer. */
function writersTable({ writers: { roles, rows }, template }) {
  if (rows.length === 0) return "";
  const row = ({ text, asString, asSegments, isPlain }) => make(
    "tr",
    {},
    make("th", { scope: "row" }, make("code", {}, text)),
    ...(isPlain
      ? [make("td", { colspan: "2", class: "chat-ink-warn" }, "every role: it is plain text")]
      : [writersCell(asString, roles), writersCell(asSegments, roles)]),
  );
  const caption = template.kind === "turns" ? "Who can write which control token" : "Who can write which markup";
  const heads = ["Token", "As one string", "As segments"].map((each) => make("th", { scope: "col" }, each));
  const note = `Roles of ${template.name}: ${roles.join(", ")}. Each is tried with this tokenizer.`;
  return make(
    "div",
    { class: "chat-writers table-scroller", role: "region", tabindex: "0", "aria-label": caption },
    make(
      "table",
      { class: "data-table" },
      make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...heads)),
      make("tbody", {}, ...rows.map(row)),
    ),
    make("p", { class: "chat-writers-note" }, note),
  );
}

function writersCell(writers, roles) {
  if (writers.length === 0) return make("td", { class: "chat-ink-good" }, "nobody");
  return make("td", { class: "chat-ink-danger" }, writers.length === roles.length ? "every role" : writers.join(", "));
}

/** White space at the ends of a turn belongs to its header and its end marker. */
function trimmedRuns(runs) {
  const kept = runs.map((run) => ({ ...run }));
  if (kept.length > 0 && kept[0].marker === null) kept[0].text = kept[0].text.trimStart();
  if (kept.length > 0 && kept.at(-1).marker === null) kept.at(-1).text = kept.at(-1).text.trimEnd();
  return kept.filter((run) => run.text !== "");
}

function shownRuns(runs) {
  if (runs.length <= RUNS) return runs;
  const hidden = runs.length - RUNS;
  return [...runs.slice(0, RUNS - 4), { text: ` … ${hidden} parts … `, marker: null }, ...runs.slice(-4)];
}

function isShown(turn) {
  return turn.isForged || trimmedRuns(turn.runs).length > 0;
}

function shortened(text) {
  if (text.length <= HEAD_LENGTH + TAIL_LENGTH) return text;
  return `${text.slice(0, HEAD_LENGTH)} … ${text.slice(-TAIL_LENGTH)}`;
}

function listed(names) {
  const shown = names.slice(0, LISTED);
  if (names.length > LISTED) shown.push(`${names.length - LISTED} more`);
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}
