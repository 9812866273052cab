/** All tokenizers at once: one text over every tokenizer at hand, and one sentence in forty languages over all of them. */

import { downloadFile, formatNumber, formatPrice, make } from "./dom.js";
import { textButton } from "./icons.js";
import { LANGUAGES } from "./languages.js";
import { pictureButtons } from "./picture.js";

const PAUSE = 120;
const MAX_SENTENCES = 200;
const MAX_OWN = 20_000;

/**
 * @param {object} context
 * @param {() => void} addTokenizer opens the picker
 * @returns {{element: HTMLElement, enter: () => void, leave: () => void}}
 */
export function createAllMode(context, addTokenizer) {
  const { client, notices, store, tokenizers } = context;
  let [isShown, isStale, timer, csv] = [false, true, 0, { text: "", languages: "" }];

  const textTable = make("table", { class: "data-table all-table number" });
  const textNote = make("p", { class: "all-note" });
  const languageTable = make("table", { class: "data-table all-table all-languages number" });
  const languageNote = make("p", { class: "all-note" });
  const own = make("textarea", {
    class: "field all-own", rows: 4, spellcheck: "false", dir: "auto", "aria-label": "Sentences, one a line",
    placeholder: "English: Where is the station?\nDeutsch: Wo ist der Bahnhof?",
    oninput: () => store.set({ sentences: own.value.slice(0, MAX_OWN) }),
  });
  own.value = store.get().sentences ?? "";
  const add = textButton("plus", "Add a tokenizer", addTokenizer);
  const element = make("div", { class: "all-mode" },
    panel("text", "This text, with every tokenizer", [add], textNote, textTable),
    panel("languages", "The language tax", [], languageNote, languageTable,
      make("details", { class: "all-details no-picture" },
        make("summary", {}, "Sentences of your own"),
        make("p", { class: "quiet" }, "One a line, each with its language and a colon in front. The first is what the others are compared with."),
        own)));

  function panel(name, title, actions, note, table, ...more) {
    const figure = make("div", { class: "all-figure" }, note, make("div", { class: "table-scroller", tabindex: 0, role: "region", "aria-label": `${title}: table` }, table));
    const save = () => downloadFile(`${name}.csv`, csv[name], "text/csv");
    const copy = textButton("download", "CSV", save, { class: "plain", "aria-label": `Download ${name} as CSV` });
    return make("section", { class: "panel", "aria-labelledby": `all-${name}` },
      make("div", { class: "panel-heading" }, make("h2", { class: "panel-title", id: `all-${name}` }, title),
        make("span", { class: "panel-actions" }, ...actions, copy, ...pictureButtons(name, () => figure))),
      make("div", { class: "panel-body" }, figure, ...more));
  }

  store.subscribe((state, before) => {
    if (state.sentences !== before.sentences && own.value !== state.sentences) own.value = state.sentences ?? "";
    if (["text", "price", "sentences", "readsSpecial"].some((name) => state[name] !== before[name])) refresh();
  });
  tokenizers.subscribe(refresh);

  function refresh() {
    isStale = true;
    clearTimeout(timer);
    if (isShown) timer = setTimeout(() => void draw(), PAUSE);
  }

  async function draw() {
    isStale = false;
    const { text, sentences } = store.get();
    const rows = (sentences ?? "").trim() === "" ? LANGUAGES : ownSentences(sentences);
    const counted = [];
    for (const { name } of tokenizers.choices().filter(({ source, loaded }) => source !== "published" || loaded)) {
      try {
        const tokenizer = await tokenizers.load(name);
        const counts = await client.counts(tokenizer.key, [text], { special: tokenizers.special(tokenizer) });
        counted.push({ name, tokens: counts[0], languages: await client.counts(tokenizer.key, rows.map((row) => row.text)) });
      } catch (error) {
        notices.show(error.message, "problem");
      }
    }
    if (isStale || !isShown) return;
    counted.sort((one, other) => one.tokens - other.tokens);
    drawText(text, counted);
    drawLanguages(rows, counted, rows === LANGUAGES);
  }

  function drawText(text, counted) {
    const bytes = new TextEncoder().encode(text).length;
    const most = Math.max(1, ...counted.map(({ tokens }) => tokens));
    const rows = counted.map(({ name, tokens }) => {
      const price = formatPrice((tokens * store.get().price) / 1e6);
      return [name, tokens, tokens > 0 ? (bytes / tokens).toFixed(2) : "", price];
    });
    textNote.textContent = `${formatNumber(bytes)} bytes, ${formatPrice(store.get().price)} per million tokens.`;
    const head = ["Tokenizer", "Tokens", "Bytes per token", "Price"];
    csv.text = toCsv([head, ...rows]);
    fill(textTable, "Tokens of the text", head, rows.map(([name, tokens, perToken, price]) =>
      make("tr", {}, make("th", { scope: "row" }, name), barCell(formatNumber(tokens), tokens / most), make("td", {}, perToken), make("td", {}, price))));
  }

  function drawLanguages(rows, counted, isDeclaration) {
    const ratios = counted.map(({ languages }) => languages.map((count) => count / Math.max(1, languages[0])));
    const order = rows.map((_, row) => row);
    if (ratios.length > 0) order.sort((one, other) => ratios[0][other] - ratios[0][one]);
    const most = Math.max(1, ...ratios.flat());
    languageNote.textContent = isDeclaration
      ? `${worst(rows, counted, ratios)} The text is the first article of the Universal Declaration of Human Rights.`
      : worst(rows, counted, ratios);
    const head = ["Language", ...counted.map(({ name }) => name)];
    csv.languages = toCsv([head, ...order.map((row) => [rows[row].name, ...counted.map(({ languages }) => languages[row])])]);
    fill(languageTable, "Tokens of one sentence, compared with the first language", head, order.map((row) =>
      make("tr", {}, make("th", { scope: "row", title: rows[row].text }, rows[row].name), ...counted.map(({ languages }, at) =>
        barCell(`${ratios[at][row].toFixed(1)}×`, ratios[at][row] / most, formatNumber(languages[row]))))));
  }

  return {
    element,
    enter() {
      isShown = true;
      if (isStale) refresh();
    },
    leave() {
      isShown = false;
    },
  };
}

/** The sentence that people share: what each tokenizer charges most for. */
function worst(rows, counted, ratios) {
  const parts = counted.map(({ name }, at) => {
    const row = ratios[at].indexOf(Math.max(...ratios[at]));
    return `${ratios[at][row].toFixed(1)} times as many tokens in ${rows[row].name} (${name})`;
  });
  return parts.length === 0 ? "" : `The same sentence needs up to ${parts.join(", ")} as in ${rows[0].name}.`;
}

/** Sentences as people type them; a line without a name has its number. */
function ownSentences(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "").slice(0, MAX_SENTENCES);
  return lines.map((line, at) => {
    const [, name, sentence] = /^([^:]{1,40}):\s*(.+)$/.exec(line) ?? [null, `${at + 1}`, line];
    return { name, text: sentence };
  });
}

function fill(table, caption, head, rows) {
  table.replaceChildren(make("caption", { class: "visually-hidden" }, caption),
    make("thead", {}, make("tr", {}, ...head.map((each) => make("th", { scope: "col" }, each)))), make("tbody", {}, ...rows));
}

/** A cell with a number, a bar as long as its share, and a smaller number. */
function barCell(text, share, more) {
  const bar = make("span", { class: "all-bar", "aria-hidden": "true" });
  bar.style.inlineSize = `${(100 * share).toFixed(2)}%`;
  return make("td", { class: "all-bar-cell" }, make("span", { class: "all-number" }, text), more ? make("span", { class: "quiet" }, ` ${more}`) : null, bar);
}

/** Rows as CSV (RFC 4180). */
function toCsv(rows) {
  const field = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  return rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
}
