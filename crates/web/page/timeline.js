// Who was, is and will be out of service: groups, in them nodes, over time. What is expected is
// dashed. The rest of a long queue is one row of numbers.

import { h, render, text } from "./dom.js";
import { countOf, formatNumber, formatTime, now, parseTime } from "./format.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const MAX_GROUPS = 12;
const MAX_ENDED = 5;
const MAX_EXPECTED = 8;
const BINS = 72;
const TICK_STEPS = [MINUTE, 2 * MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 48 * HOUR];
const SPANS = [["whole", "Whole rollout", null], ["near", "Next 2 hours", 2 * HOUR], ["day", "Next 12 hours", 12 * HOUR]];
const PHASES = ["waiting", "draining", "holding", "rebooting", "returning"];

let span = "whole";

export function renderTimeline(section, view, matches, onOpen) {
  const groups = collectGroups(view, matches);
  section.hidden = groups.length === 0;
  if (section.hidden) return;
  const range = chooseRange(groups, view);
  const shown = groups.slice(0, MAX_GROUPS);
  render(section,
    h("div", { class: "head" }, h("h2", { id: "timeline-title" }, "Timeline"), drawLegend(),
      drawSpanChoice(() => renderTimeline(section, view, matches, onOpen))),
    h("div", { class: "card timeline" },
      drawAxis(range),
      shown.map((group) => drawGroup(group, range, onOpen)),
      groups.length > MAX_GROUPS ? h("p", { class: "quietline pad" }, `${countOf(groups.length - MAX_GROUPS, "more group")}: choose one above.`) : null),
    drawLeftOut(view.estimate?.leftOut ?? []));
}

/** What the estimate does not know. */
function drawLeftOut(sentences) {
  if (sentences.length === 0) return null;
  return h("p", { class: "quietline note" }, "The expected times leave out: ", text(sentences.join(" ")));
}

function collectGroups(view, matches) {
  const groups = new Map();
  const rowsOf = (name) => {
    if (!groups.has(name)) groups.set(name, { name, out: [], ended: [], expected: [], windows: [], info: null });
    return groups.get(name);
  };
  const estimates = view.estimate?.nodes ?? {};
  const outNow = new Set(view.out.map((node) => node.name));
  for (const node of view.out) {
    if (matches(node)) rowsOf(node.group).out.push({ name: node.name, bars: withoutWaiting(node.bars), estimate: estimates[node.name], node });
  }
  for (const one of view.recent) {
    const row = { name: one.node, bars: withoutWaiting(one.bars), outcome: one.outcome, finished: one.finished };
    if (matches({ name: one.node, group: one.group, reason: one.outcome }) && row.bars.length > 0 && !outNow.has(one.node)) rowsOf(one.group).ended.push(row);
  }
  for (const node of view.waiting) {
    const estimate = estimates[node.name];
    if (matches(node)) rowsOf(node.group).expected.push({ name: node.name, bars: [], estimate, node });
  }
  for (const info of view.groups) {
    const group = groups.get(info.name);
    if (group) Object.assign(group, { info, windows: info.windows ?? [] });
  }
  return [...groups.values()].sort((a, b) =>
    b.out.length - a.out.length || b.expected.length - a.expected.length || a.name.localeCompare(b.name));
}

/** A node may wait for days, and is in service all the while. */
function withoutWaiting(bars) {
  return bars.filter((bar) => bar.phase !== "waiting");
}

function chooseRange(groups, view) {
  const middle = now();
  let from = middle - 10 * MINUTE;
  let until = middle + 10 * MINUTE;
  for (const group of groups) {
    for (const row of group.out) for (const bar of row.bars) from = Math.min(from, parseTime(bar.from));
    for (const row of group.ended.slice(0, MAX_ENDED)) for (const bar of row.bars) from = Math.min(from, Math.max(parseTime(bar.from), middle - 6 * HOUR));
    for (const row of group.out) if (row.node.deadline) until = Math.max(until, parseTime(row.node.deadline));
  }
  const finish = parseTime(view.estimate?.latestFinish ?? view.estimate?.finish);
  if (finish !== null) until = Math.max(until, finish);
  const chosen = SPANS.find(([id]) => id === span)[2];
  from = Math.max(from, middle - (chosen ?? 48 * HOUR) / 2);
  until = Math.min(until, middle + (chosen ?? 7 * 24 * HOUR));
  const margin = (until - from) * 0.02;
  return { from: from - margin, until: until + margin, now: middle };
}

function drawSpanChoice(redraw) {
  return h("label", { class: "field" }, h("span", { class: "hidden" }, "Span of the timeline"),
    h("select", { on: { change: (event) => { span = event.target.value; redraw(); } } },
      SPANS.map(([id, title]) => h("option", { key: id, value: id }, title))));
}

function share(range, time) {
  return Math.min(100, Math.max(0, (100 * (time - range.from)) / (range.until - range.from)));
}

function drawLegend() {
  const entry = (name, label) => h("li", { key: name }, h("span", { class: `swatch ${name}` }), label);
  return h("ul", { class: "legend keys" },
    PHASES.slice(1).map((phase) => entry(phase, phase)),
    entry("expected", "expected"), entry("window", "window open"));
}

function drawAxis(range) {
  const step = TICK_STEPS.find((step) => (range.until - range.from) / step <= 8) ?? 96 * HOUR;
  const ticks = [];
  for (let time = Math.ceil(range.from / step) * step; time < range.until; time += step) ticks.push(time);
  return h("div", { class: "row axis", "aria-hidden": "true" },
    h("div", { class: "label" }, "UTC"),
    h("div", { class: "track" },
      ticks.map((time) => h("span", { key: `tick ${time}`, class: "tick", style: { left: `${share(range, time)}%` } }, formatTime(time))),
      drawNow(range)));
}

function drawNow(range) {
  return h("span", { key: "now", class: "now", style: { left: `${share(range, range.now)}%` } });
}

function drawGroup(group, range, onOpen) {
  const ended = group.ended.slice(0, MAX_ENDED).reverse();
  const expected = group.expected.slice(0, MAX_EXPECTED);
  const rest = group.expected.slice(MAX_EXPECTED);
  const { info } = group;
  const budget = info ? `${info.used} of ${info.allowed} unavailable` : "";
  const summary = [budget, countOf(group.out.length, "node") + " out", `${formatNumber(group.expected.length)} waiting`, info?.paused ? `paused: ${info.paused}` : ""];
  return h("div", { key: `group ${group.name}`, class: "lanes", role: "group", "aria-label": `Timeline of group ${group.name}` },
    h("div", { key: "head", class: "lanehead" }, h("h3", null, text(group.name)), h("span", { class: "quietline" }, text(summary.filter(Boolean).join(" · ")))),
    [...ended, ...group.out, ...expected].map((row) => drawRow(row, group, range, onOpen)),
    rest.length > 0 ? drawRest(rest, group, range) : null);
}

function drawRow(row, group, range, onOpen) {
  const bars = row.bars.map((bar) => drawBar(bar, range));
  return h("div", { key: `row ${row.name} ${row.finished ?? ""}`, class: "row" },
    h("div", { class: "label" }, h("button", {
      type: "button", class: "open", tabindex: -1, on: { click: () => onOpen(`node/${row.name}`) },
    }, text(row.name))),
    h("div", { class: "track", role: "img", "aria-label": describeRow(row) },
      drawWindows(group, range), bars, drawExpected(row, range), drawNow(range)));
}

function drawWindows(group, range) {
  return group.windows
    .map((window) => [parseTime(window.from), parseTime(window.until)])
    .filter(([from, until]) => until > range.from && from < range.until)
    .map(([from, until]) => h("span", { key: `window ${from}`, class: "window", style: spanOf(range, from, until) }));
}

function spanOf(range, from, until) {
  const left = share(range, from);
  return { left: `${left}%`, width: `${Math.max(0, share(range, until) - left)}%` };
}

function drawBar(bar, range) {
  const from = parseTime(bar.from);
  const until = bar.until ? parseTime(bar.until) : range.now;
  if (until < range.from) return null;
  const title = `${bar.phase} ${formatTime(from, true)} – ${bar.until ? formatTime(until, true) : "now"}`;
  return h("span", { key: `bar ${bar.phase} ${bar.from}`, class: `bar ${knownPhase(bar.phase)}`, title, style: spanOf(range, from, until) });
}

function knownPhase(phase) {
  return PHASES.includes(phase) ? phase : "waiting";
}

function drawExpected(row, range) {
  if (!row.estimate) return null;
  const start = Math.max(parseTime(row.estimate.start), row.bars.length > 0 ? range.now : 0);
  const finish = parseTime(row.estimate.finish);
  const latest = parseTime(row.estimate.latestFinish);
  const title = `expected ${formatTime(start)} – ${formatTime(finish)}, at the latest ${formatTime(latest)}`;
  return [
    h("span", { key: "expected", class: "bar expected", title, style: spanOf(range, start, finish) }),
    h("span", { key: "latest", class: "bar latest", title, style: spanOf(range, finish, latest) }),
  ];
}

function describeRow(row) {
  if (row.outcome) return `${row.outcome}, finished ${formatTime(parseTime(row.finished))}`;
  const expected = row.estimate ? `expected ${formatTime(parseTime(row.estimate.start))} to ${formatTime(parseTime(row.estimate.finish))}` : "no estimate";
  return row.bars.length > 0 ? `${row.node.phase} since ${formatTime(parseTime(row.node.since))}, ${expected}` : `waiting, ${expected}`;
}

/** How many of the others are expected to be out at each time. */
function drawRest(rest, group, range) {
  const counts = new Array(BINS).fill(0);
  const width = (range.until - range.from) / BINS;
  let estimated = 0;
  for (const { estimate } of rest) {
    if (!estimate) continue;
    estimated += 1;
    const first = Math.floor((parseTime(estimate.start) - range.from) / width);
    const last = Math.floor((parseTime(estimate.finish) - range.from) / width);
    for (let bin = Math.max(0, first); bin <= Math.min(BINS - 1, last); bin += 1) counts[bin] += 1;
  }
  const most = Math.max(1, ...counts);
  const bins = counts.map((count, bin) => count === 0 ? null : h("span", {
    key: `bin ${bin}`, class: "bin", title: `${countOf(count, "node")} at ${formatTime(range.from + bin * width)}`,
    style: { left: `${(100 * bin) / BINS}%`, width: `${100 / BINS}%`, height: `${15 + (85 * count) / most}%` },
  }));
  const label = `${countOf(rest.length, "more node")} waiting` + (estimated > 0 ? `, at most ${most} expected out at once` : ", without an estimate");
  return h("div", { key: "rest", class: "row rest" },
    h("div", { class: "label quietline" }, `${formatNumber(rest.length)} more`),
    h("div", { class: "track", role: "img", "aria-label": label }, drawWindows(group, range), bins, drawNow(range)));
}
