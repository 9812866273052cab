// The search of the site runs in a web worker. Browsers start none on pages of file://, so there this class runs the
// script of a worker in a hidden frame. It offers what the search uses: messages, importScripts and terminate.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.title = "Search"
      document.body.append(this.frame)
      const scope = this.frame.contentWindow
      // The handlers of the page: messages of the script arrive as those of a worker.
      scope.postMessage = data => {
        const message = new MessageEvent("message", { data })
        if (this.onmessage) this.onmessage(message)
        this.dispatchEvent(message)
      }
      const load = source => new Promise((resolve, reject) => {
        const script = scope.document.createElement("script")
        script.src = new URL(source, document.baseURI).href
        script.onload = resolve
        script.onerror = () => reject(new Error(`cannot load ${source}`))
        scope.document.body.append(script)
      })
      scope.importScripts = (...sources) =>
        sources.reduce((loaded, source) => loaded.then(() => load(source)), Promise.resolve())
      this.ready = load(url)
    }

    postMessage(data) {
      const scope = this.frame.contentWindow
      this.ready.then(() => scope.dispatchEvent(new scope.MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
