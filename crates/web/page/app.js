// Puts the page together: the newest view, what is searched for, and what is open.

import { createActions } from "./actions.js";
import { createDetail } from "./detail.js";
import { h, render } from "./dom.js";
import { openFeed } from "./feed.js";
import { formatNumber, formatTime, now, quoteWord } from "./format.js";
import { renderSummary } from "./summary.js";
import { createNodes, createRecent, createWaiting, renderGroups, renderHosts, renderOut, renderRemediations, renderSchedules, waitingRows } from "./tables.js";
import { renderTimeline } from "./timeline.js";

const find = (id) => document.getElementById(id);
const SUBJECT = /^(node|nodereboot)\/[a-z0-9.-]+$|^(host|machine|remediation|schedule)\/[a-z0-9.-]+\/[a-z0-9.-]+$/;

let view = null;
let about = { needsToken: false, rights: "", commandPrefix: ["dogwatch"] };
let connection = { state: "connecting" };
let search = "";
let group = "";
const viewOf = () => view;
const commandOf = (words) => [...about.commandPrefix, ...words].map(quoteWord).join(" ");

const actions = createActions(find("dialog"), {
  aboutOf: () => about, commandOf, onCopy: copyText,
  onDone: (good, text) => announce(good ? `Done. ${text}` : `Not done. ${text}`),
});
const detail = createDetail(find("detail"), {
  onAct: actions.ask, onCopy: copyText, commandOf, viewOf, onClose: () => setAddress(null),
});
const waiting = createWaiting(find("waiting"), openSubject, viewOf);
const nodes = createNodes(find("nodes"), openSubject);
const recent = createRecent(find("recent"), openSubject);

function openSubject(subject) {
  if (!subject || !SUBJECT.test(subject)) return;
  setAddress(subject);
  detail.show(subject);
}

/** The address names what is open, so that it can be sent to somebody. */
function setAddress(subject) {
  history.replaceState(null, "", subject ? `#${subject}` : location.pathname);
}

function matches(row) {
  if (group !== "" && row.group !== null && row.group !== group) return false;
  if (search === "") return true;
  return [row.name, row.group, row.reason, row.message, row.phase, row.status, row.asked].some((text) => text && String(text).toLowerCase().includes(search));
}

function draw() {
  drawConnection();
  if (!view) return;
  document.title = view.needsPerson.length > 0 ? `(${view.needsPerson.length}) Dogwatch` : "Dogwatch";
  renderSummary(find("summary"), view, { onOpen: openSubject, onCopy: copyText });
  drawGroupChoice();
  renderOut(find("out"), view, matches, openSubject);
  renderTimeline(find("timeline"), view, matches, openSubject);
  const queue = waitingRows(view, matches);
  waiting.update(queue.rows, queue.total);
  renderGroups(find("groups"), view, matches, actions.ask);
  renderHosts(find("hosts"), view, matches, openSubject);
  renderRemediations(find("remediations"), view, matches, openSubject);
  renderSchedules(find("schedules"), view, matches, openSubject);
  recent.update(view.recent.filter((row) => matches({ ...row, name: row.node, reason: row.outcome })), view.recent.length);
  nodes.update(view.nodes.filter(matches), view.nodes.length);
  drawJumps(queue.total);
  detail.update();
}

function drawJumps(waitingTotal) {
  const links = [
    ["out", "Out", view.out.length], ["waiting", "Waiting", waitingTotal], ["groups", "Groups", view.groups.length],
    ["hosts", "Hosts", (view.hosts ?? []).length], ["remediations", "Remediations", (view.remediations ?? []).length],
    ["recent", "Ended", view.recent.length], ["nodes", "Nodes", view.nodes.length],
  ];
  render(find("jump"), h("ul", null, links.filter(([, , count]) => count > 0).map(([id, title, count]) =>
    h("li", { key: id }, h("a", { href: `#${id}-title`, on: { click: (event) => jumpTo(event, id) } }, title, h("span", { class: "count" }, formatNumber(count)))))));
}

function jumpTo(event, id) {
  event.preventDefault();
  const title = find(`${id}-title`);
  title?.setAttribute("tabindex", "-1");
  find(id).scrollIntoView({ block: "start" });
  title?.focus({ preventScroll: true });
}

function drawGroupChoice() {
  const select = find("group");
  render(select, h("option", { key: "", value: "" }, "All groups"),
    view.groups.map((one) => h("option", { key: `group ${one.name}`, value: one.name }, one.name)));
  select.value = group;
  if (select.value !== group) { group = ""; select.value = ""; }
}

const CONNECTION_TEXTS = {
  connecting: () => "Connecting…",
  live: () => (view ? `Live · ${formatTime(now(), true)} UTC` : "Reading the cluster…"),
  cut: () => `Connection lost at ${formatTime(connection.since, true)} UTC. What you see is older. Trying again…`,
  ended: () => "This session has ended. Run the command again and open its new link.",
};

function drawConnection() {
  const element = find("connection");
  element.className = `connection ${connection.state}`;
  // Screen readers would read out every second.
  element.setAttribute("aria-live", connection.state === "live" ? "off" : "polite");
  render(element, h("span", { class: "dot" }), CONNECTION_TEXTS[connection.state]());
  document.body.classList.toggle("stale", ["cut", "ended"].includes(connection.state));
}

function announce(text) {
  find("announce").textContent = text;
}

async function copyText(text, button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    announce("Copied");
    button.textContent = "Copied";
  } catch {
    const code = button.parentElement.querySelector("code");
    getSelection().selectAllChildren(code);
    button.textContent = "Selected";
  }
  setTimeout(() => { button.textContent = label; }, 1500);
}

// ── theme ───────────────────────────────────────────────────────────────────────────────────────

const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  find("theme").textContent = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" }[theme];
  try { localStorage.setItem("theme", theme); } catch { /* A browser without storage forgets it. */ }
}

function storedTheme() {
  try { return localStorage.getItem("theme"); } catch { return null; }
}

// ── start ───────────────────────────────────────────────────────────────────────────────────────

setTheme(THEMES.includes(storedTheme()) ? storedTheme() : "auto");
find("theme").addEventListener("click", () => {
  const current = THEMES.indexOf(document.documentElement.dataset.theme);
  setTheme(THEMES[(current + 1) % THEMES.length]);
});
find("search").addEventListener("input", (event) => { search = event.target.value.trim().toLowerCase(); draw(); });
find("group").addEventListener("change", (event) => { group = event.target.value; draw(); });
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.matches?.("input, select, textarea") || find("dialog").open;
  if (event.key === "/" && !isTyping) { event.preventDefault(); find("search").focus(); }
  if (event.key === "Escape" && !find("dialog").open) detail.close();
});
addEventListener("hashchange", () => openSubject(decodeURIComponent(location.hash.slice(1))));

let lastNeeds = 0;

function receive(next) {
  const isFirst = view === null;
  if (isFirst) performance.mark("first-view");
  view = next;
  draw();
  const needs = view.needsPerson.length;
  if (!isFirst && needs > lastNeeds) announce(view.sentence);
  else if (!isFirst && lastNeeds > 0 && needs === 0) announce("Nothing needs you any more.");
  lastNeeds = needs;
  if (isFirst) {
    requestAnimationFrame(() => setTimeout(() => performance.mark("first-paint-of-view")));
    openSubject(decodeURIComponent(location.hash.slice(1)));
  }
}

async function start() {
  openFeed(receive, (next) => { connection = next; drawConnection(); });
  const answer = await fetch("/api/about").catch(() => null);
  if (answer?.ok) about = await answer.json();
  find("about").textContent = about.version ? `· Dogwatch ${about.version} · times are UTC · ${about.rights}` : "";
  draw();
}

setInterval(draw, 1000);
start();
