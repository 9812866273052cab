/** Short messages at the bottom of the page. A problem stays until it is closed. */

import { make } from "./dom.js";
import { icon, iconButton } from "./icons.js";

const SHOWN_MILLISECONDS = 4000;

export class Notices {
  element = make("div", { class: "notices" });

  /**
   * @param {string} message
   * @param {"done" | "problem"} [kind]
   */
  show(message, kind = "done") {
    const close = iconButton("close", "Close the message", () => notice.remove(), { class: "small" });
    const notice = make(
      "div",
      { class: `notice notice-${kind}`, role: kind === "problem" ? "alert" : "status" },
      icon(kind === "problem" ? "warning" : "check"),
      make("p", {}, message),
      close,
    );
    for (const earlier of this.element.querySelectorAll(`.notice-${kind}`)) earlier.remove();
    this.element.append(notice);
    if (kind === "done") setTimeout(() => notice.remove(), SHOWN_MILLISECONDS);
  }
}
