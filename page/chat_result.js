// The conversation as a model reads it: the number of tokens, what the vocabulary lacks, and the lanes.
import { chatLanes } from "./chat_lanes.js";
import { FLAG_SPECIAL } from "./chips.js";
import { countNoun, formatNumber, formatPrice, make } from "./dom.js";
import { icon } from "./icons.js";

/**
 * @param {{switches: HTMLElement[], addsSwitch: HTMLElement}} options
 *   `addsSwitch` adds the template's control tokens to the vocabulary.
 * @returns {{element: HTMLElement, ids: () => Uint32Array | null, text: () => string,
 *   show: (analysis: import("./chat_lanes.js").ChatAnalysis, chip: Function, note: string, price: number) => void,
 *   showBuiltIn: (name: string, hasServer: boolean, ownCount: number | null) => void,
 *   showVocabulary: (missing: string[], added: {content: string, id: number}[], isChosen: boolean) => void,
 *   showProblem: (message: string) => void}}
 */
export function createChatResult({ switches, addsSwitch }) {
  let [ids, text] = [null, ""];
  const total = make("p", { class: "chat-total" });
  const notice = make("div", { class: "chat-problem", role: "status" });
  const maskNote = make("p", { class: "chat-mask-note quiet" });
  const lanes = make("ol", { class: "chat-lanes", "aria-label": "Rendered conversation" });
  const mixed = legendItem("content", "chat-mixed", "both in one token");
  const learned = legendItem("content", "chat-learned", "assistant’s");
  const control = legendItem("markup", "chip-special", "control token");
  const legend = make(
    "p",
    { class: "chat-legend" },
    legendItem("markup", "", "markup"),
    control,
    legendItem("content", "", "content"),
    mixed,
    learned,
  );
  const head = make(
    "div",
    { class: "chat-result-head" },
    total,
    make("div", { class: "chat-result-switches" }, ...switches),
  );

  function legendItem(kind, name, text) {
    return make("span", { class: `chat-${kind}` }, make("span", { class: `chip ${name}` }, text));
  }

  function showNotice(tone, sign, ...content) {
    notice.className = `chat-problem chat-tone-${tone}`;
    notice.replaceChildren(icon(sign), make("div", {}, ...content));
  }

  return {
    element: make("div", { class: "chat-result" }, head, legend, notice, maskNote, lanes),
    ids: () => ids,
    text: () => text,

    show(analysis, chip, note, price) {
      const { encoded, pieces, ranges, isMixed, mask } = analysis;
      [ids, text] = [encoded.ids, analysis.rendered.text];
      const sums = { markup: 0, content: 0 };
      pieces.forEach(({ message }, index) => {
        sums[message === null ? "markup" : "content"] += ranges[index][1] - ranges[index][0];
      });
      const parts = `${formatNumber(sums.content)} content + ${formatNumber(sums.markup)} markup`;
      const [number, noun] = countNoun(ids.length, "token").split(" ");
      total.replaceChildren(
        make("span", {}, make("strong", { class: "number" }, number), ` ${noun}`),
        make("span", { class: "quiet number" }, parts),
        make("span", { class: "quiet number" }, `${formatPrice((ids.length * price) / 1e6)} at ${formatPrice(price)} per 1M`),
      );
      maskNote.textContent = note;
      legend.hidden = false;
      control.hidden = !encoded.flags.some((each) => each & FLAG_SPECIAL);
      mixed.hidden = !isMixed.includes(1);
      learned.hidden = mask === null;
      lanes.replaceChildren(...chatLanes(analysis, chip));
    },

    /** Says that the model has a template of its own, which is not shown. */
    showBuiltIn(name, hasServer, ownCount) {
      const cost = ownCount ? `, in which this conversation has ${countNoun(ownCount, "token")}` : "";
      const how = hasServer ? "Choose it under Template." : "Only the local server of bpe-tokenizer view can run it.";
      showNotice("quiet", "info", make("p", {}, `This model has its own chat template${cost}. These are the tokens of the built-in template ${name}. ${how}`));
    },

    /** Says which control tokens the vocabulary lacks, or which were added; a template that nobody chose is no reason to warn. */
    showVocabulary(missing, added, isChosen) {
      if (added.length > 0) {
        const list = added.map(({ content, id }) => `${content} is ${id}`).join(", ");
        const text = `These special tokens are added here: ${list}. A model must be trained with them.`;
        showNotice("quiet", "info", make("p", {}, text), addsSwitch);
      } else if (missing.length > 0) {
        const text = `This tokenizer has no token for ${missing.join(", ")}. It reads this markup as plain text, so a ` +
          "message can imitate it.";
        const inPython = "In Python this is an error; the tokens below are those of plain_markup=True.";
        showNotice(isChosen ? "warn" : "quiet", isChosen ? "warning" : "info", make("p", {}, text), addsSwitch, make("p", { class: "chat-in-python" }, inPython));
      } else {
        notice.className = "chat-problem";
        notice.replaceChildren();
      }
    },

    /** Shows why the conversation has no tokens. */
    showProblem(message) {
      [ids, text] = [null, ""];
      total.replaceChildren();
      maskNote.textContent = "";
      legend.hidden = true;
      lanes.replaceChildren();
      showNotice("danger", "warning", make("p", { class: "mono" }, message));
    },
  };
}
