// What may scroll sideways gets the keyboard's focus, so that arrow keys scroll it; what fits does not.
const scrolling = ".md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset p:has(> img:only-child)"
const mark = element => {
  const scrolls = element.scrollWidth > element.clientWidth
  if (scrolls && element.tabIndex !== 0) element.setAttribute("tabindex", "0")
  if (!scrolls && element.hasAttribute("tabindex")) element.removeAttribute("tabindex")
}
const sizes = new ResizeObserver(entries => entries.forEach(entry => mark(entry.target)))
// The theme removes the attribute on devices without a pointer.
const attributes = new MutationObserver(changes => changes.forEach(change => mark(change.target)))
const seen = new WeakSet()
const prepare = () => {
  for (const element of document.querySelectorAll(scrolling)) {
    if (seen.has(element)) continue
    seen.add(element)
    sizes.observe(element)
    attributes.observe(element, { attributeFilter: ["tabindex"] })
    mark(element)
  }
  // The theme puts the button that copies a block into a landmark, one for each block.
  for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])")) buttons.setAttribute("role", "none")
}
addEventListener("load", prepare)
new MutationObserver(prepare).observe(document.querySelector("article"), { childList: true, subtree: true })
