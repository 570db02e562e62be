// Receives the views. The connection's state is one of: connecting, live, cut, ended, refused.

import { now, setServerTime } from "./format.js";

// The server sends something every 10 s.
const SILENCE_LIMIT = 30_000;
const RETRY_PAUSE = 2_000;

export function openFeed(onView, onState) {
  let source = null;
  let lastEvent = 0;
  let cutSince = null;
  let retry = null;

  function heard() {
    lastEvent = Date.now();
    cutSince = null;
    onState({ state: "live" });
  }

  function connect() {
    retry = null;
    source?.close();
    source = new EventSource("/api/events");
    lastEvent = Date.now();
    source.addEventListener("alive", (event) => {
      setServerTime(JSON.parse(event.data));
      heard();
    });
    source.addEventListener("view", (event) => {
      const view = JSON.parse(event.data);
      heard();
      onView(view);
    });
    source.addEventListener("error", () => lose());
  }

  async function lose() {
    cutSince ??= now();
    onState({ state: "cut", since: cutSince });
    if (source.readyState !== EventSource.CLOSED || retry !== null) return;
    // The server refused the stream: it says why.
    retry = setTimeout(connect, RETRY_PAUSE);
    const answer = await fetch("/api/about").catch(() => null);
    if (answer?.status === 401) {
      clearTimeout(retry);
      onState({ state: "ended" });
    }
  }

  setInterval(() => {
    if (retry === null && Date.now() - lastEvent > SILENCE_LIMIT) {
      lose();
      connect();
    }
  }, 5_000);
  onState({ state: "connecting" });
  connect();
}
