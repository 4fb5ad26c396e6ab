// Runs the search of the site in a frame: browsers refuse workers of pages opened as files.
if (location.protocol === "file:") {
  // Like between a page and its worker, messages are copies and arrive later.
  const send = (data, deliver) => {
    const copy = structuredClone(data);
    setTimeout(() => deliver(new MessageEvent("message", { data: copy })));
  };
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.ready = new Promise((resolve) => {
        frame.onload = () => resolve(frame.contentWindow);
      });
      frame.answer = (data) => send(data, (event) => this.receive(event));
      const address = new URL(url, document.baseURI).href;
      frame.srcdoc =
        "<script>self.postMessage = (data) => frameElement.answer(data);" +
        "self.importScripts = () => {};</script>" +
        `<script src="${address}"></script>`;
      document.body.append(frame);
    }

    receive(event) {
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then((frame) => {
        send(data, (event) => frame.dispatchEvent(event));
      });
    }

    terminate() {}
  };
}
