/** Texts to try: each shows something that tokenizers treat differently. */

export const EXAMPLES = [
  {
    name: "A bit of everything",
    text: `A tokenizer cuts a text into pieces, and merges each piece into tokens.
Unbelievably, "tokenization" may be one token, or three.

def greet(name: str) -> str:
    return f"Hello, {name}!"  # 12345.678

The same sentence costs more in some languages:
Guten Morgen, wie geht es Ihnen heute?
おはようございます。今日はお元気ですか。
शुभ प्रभात, आज आप कैसे हैं?
صباح الخير، كيف حالك اليوم؟
בוקר טוב, מה שלומך היום?

Emoji are made of bytes: 🙂 👩🏽‍🚀 🇪🇺 — and so is é.`,
  },
  {
    name: "Code",
    text: `#include <stdio.h>

int main(void) {
    for (int i = 0; i < 10; i++) {
        if (i % 2 == 0)
            printf("%d is even\\n", i);
    }
    return 0;
}

SELECT name, COUNT(*) AS total
  FROM orders
 WHERE created_at >= '2025-01-01'
 GROUP BY name;
`,
  },
  {
    name: "Numbers and rare words",
    text: `3.14159265358979 1000000 1,000,000 2025-11-25T19:48:57Z 0x7fffffff
antidisestablishmentarianism floccinaucinihilipilification
 hello hello  hello   HELLO Hello
SolidGoldMagikarp https://example.org/a?b=c&d=%20e`,
  },
  {
    name: "Right to left",
    text: `מחרוזת של תווים הופכת לאסימונים.
النص يصبح رموزا، ثم أرقاما.
Mixed: the word שלום means peace, and سلام too.
`,
  },
  {
    name: "Invisible characters",
    text: `zero\u200bwidth\u200bspaces, a no-break\u00a0space,\ta tab\t, a soft\u00adhyphen,
a right-to-left override \u202etxet desrever\u202c, and a control\u0007character.
Trailing spaces   \n\n\n\ufeffA byte order mark.`,
  },
  {
    name: "Special tokens",
    text: `<|endoftext|>They look like text, and are not: <|fim_prefix|><|im_start|>user
</s><s>[INST] Switch “Special tokens” on. [/INST]<|endoftext|>`,
  },
];
