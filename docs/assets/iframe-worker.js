// A page that was opened as a file may not start a worker, which the search runs in: there a hidden frame takes its place.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #loaded;

    constructor(address) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      // What the worker posts is heard by whoever listens to it; more scripts are loaded one after the other.
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...addresses) =>
        addresses.reduce((before, each) => before.then(() => this.#load(each)), Promise.resolve());
      this.#loaded = this.#load(address);
    }

    #load(address) {
      const script = this.#frame.contentDocument.createElement("script");
      script.src = address;
      this.#frame.contentDocument.body.append(script);
      return new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));
    }

    postMessage(data) {
      this.#loaded.then(() => this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
