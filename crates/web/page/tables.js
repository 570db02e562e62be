// The lists: who is out, who waits, groups, hosts, remediations, schedules, what ended, all nodes.

import { h, render, text } from "./dom.js";
import { createGrid } from "./grid.js";
import { countOf, formatAge, formatDistance, formatNumber, formatTime, now, parseTime } from "./format.js";

function head(id, title, count, ...more) {
  return h("div", { class: "head" }, h("h2", { id: `${id}-title` }, title,
    count === null ? null : h("span", { class: "count" }, formatNumber(count))), more);
}

function chip(phase) {
  return phase ? h("span", { class: `chip ${phase}` }, phase) : null;
}

function why(row) {
  if (!row.reason && !row.message) return null;
  return [row.reason ? text(row.reason, { class: "reason" }) : null, row.reason && row.message ? " " : null, row.message ? text(row.message, { class: "message" }) : null];
}

// ── out of service ──────────────────────────────────────────────────────────────────────────────

export function renderOut(section, view, matches, onOpen) {
  const rows = view.out.filter(matches);
  section.hidden = view.out.length === 0;
  render(section, head("out", "Out of service", rows.length),
    h("div", { class: "cards" }, rows.map((node) => outCard(node, view, onOpen))),
    rows.length === 0 ? h("p", { class: "quietline" }, "None that matches.") : null);
}

function outCard(node, view, onOpen) {
  const since = parseTime(node.since);
  const deadline = parseTime(node.deadline);
  const over = deadline !== null && deadline < now();
  const part = deadline === null ? null : Math.min(100, Math.max(0, (100 * (now() - since)) / Math.max(1, deadline - since)));
  const estimate = view.estimate?.nodes?.[node.name];
  return h("article", { key: node.name, class: `card node ${node.phase}` },
    h("div", { class: "cardhead" },
      h("button", { type: "button", class: "open", on: { click: () => onOpen(`node/${node.name}`) } }, text(node.name)),
      chip(node.phase)),
    h("p", { class: "quietline" }, text(node.group), ` · for ${formatAge(node.since)}`),
    part === null ? null : h("div", { class: `until ${over ? "over" : ""}` },
      h("div", { class: "line" }, h("span", { style: { width: `${part}%` } })),
      h("p", { class: "quietline" }, over ? `deadline passed ${formatDistance(node.deadline)}` : `deadline ${formatTime(deadline)}, ${formatDistance(node.deadline)}`)),
    h("p", { class: "clamp" }, why(node) ?? h("span", { class: "quietline" }, node.phase === "holding" ? "held until it is released" : "on its way")),
    h("p", { class: "quietline clamp" }, "Asked by ", text(node.asked)),
    estimate ? h("p", { class: "quietline" }, `back about ${formatTime(parseTime(estimate.finish))}`) : null);
}

// ── lists with thousands of rows ────────────────────────────────────────────────────────────────

function listSection(section, id, title, label, columns, keyOf, onOpen) {
  const top = document.createElement("div");
  const body = document.createElement("div");
  body.className = "card flush";
  section.append(top, body);
  const grid = createGrid({ container: body, label, columns, keyOf, onOpen });
  return {
    update(rows, total) {
      section.hidden = total === 0;
      render(top, head(id, title, rows.length));
      body.hidden = rows.length === 0;
      if (!section.hidden && !body.hidden) grid.setRows(rows);
    },
  };
}

export function createWaiting(section, onOpen, viewOf) {
  const columns = [
    { title: "Node", main: true, class: "name", cell: (row) => text(row.name) },
    { title: "Place", class: "number", cell: (row) => (row.place ? String(row.place) : "–") },
    { title: "Group", class: "wideonly", cell: (row) => text(row.group) },
    { title: "Waits for", class: "why", cell: why },
    { title: "Expected", class: "when", cell: (row) => expectedStart(row, viewOf()) },
    { title: "Waiting", class: "when wideonly", cell: (row) => formatAge(row.since) },
    { title: "Asked by", class: "asked wideonly", cell: (row) => text(row.asked) },
  ];
  return listSection(section, "waiting", "Waiting, in order", "Nodes that wait for their reboot, in order", columns, (row) => row.name, (row) => onOpen(row.subject ?? `node/${row.name}`));
}

function expectedStart(row, view) {
  const estimate = view.estimate?.nodes?.[row.name];
  if (estimate) return `about ${formatTime(parseTime(estimate.start))}`;
  return row.notBefore ? `not before ${formatTime(parseTime(row.notBefore))}` : "–";
}

/** Hosts at the lock API wait beside the nodes. */
export function waitingRows(view, matches) {
  const hosts = (view.waitingHosts ?? []).map((row) => ({
    name: row.caller, group: row.group ?? "", since: row.since, reason: row.reason, message: row.message, asked: "lock API",
    subject: row.node ? `node/${row.node}` : null,
  }));
  return { rows: [...view.waiting, ...hosts].filter(matches), total: view.waiting.length + hosts.length };
}

export function createNodes(section, onOpen) {
  const columns = [
    { title: "Node", main: true, class: "name", cell: (row) => text(row.name) },
    { title: "Status", class: "state", cell: (row) => h("span", { class: row.status === "Ready" ? "" : "attention" }, row.status) },
    { title: "Group", class: "wideonly", cell: (row) => [text(row.group), row.ignored ? " (ignored)" : null] },
    { title: "Phase", class: "phase", cell: (row) => chip(row.phase) },
    { title: "Why", class: "why", cell: why },
    { title: "Last reboot", class: "when wideonly", cell: (row) => (row.last ? `${row.last.outcome} ${formatDistance(row.last.finished)}` : "–") },
  ];
  return listSection(section, "nodes", "All nodes", "All nodes", columns, (row) => row.name, (row) => onOpen(`node/${row.name}`));
}

export function createRecent(section, onOpen) {
  const columns = [
    { title: "Node", main: true, class: "name", cell: (row) => text(row.node) },
    { title: "Outcome", class: "state", cell: (row) => h("span", { class: row.outcome === "Rebooted" ? "good" : "attention" }, row.outcome) },
    { title: "Group", class: "wideonly", cell: (row) => text(row.group) },
    { title: "Finished", class: "when", cell: (row) => `${formatTime(parseTime(row.finished))} · ${formatDistance(row.finished)}` },
    { title: "Out for", class: "when wideonly", cell: outFor },
    { title: "Asked by", class: "asked wideonly", cell: (row) => text(row.asked) },
  ];
  return listSection(section, "recent", "Ended within a day", "Reboots that ended within a day", columns, (row) => `${row.node} ${row.finished}`, (row) => onOpen(`node/${row.node}`));
}

function outFor(row) {
  const first = row.bars.find((bar) => bar.phase !== "waiting");
  return first ? formatAgeBetween(first.from, row.finished) : "–";
}

function formatAgeBetween(from, until) {
  const seconds = Math.max(0, Math.round((parseTime(until) - parseTime(from)) / 1000));
  return seconds < 120 ? `${seconds}s` : `${Math.round(seconds / 60)}m`;
}

// ── groups ──────────────────────────────────────────────────────────────────────────────────────

export function renderGroups(section, view, matches, onAct) {
  const rows = view.groups.filter((group) => matches({ name: group.name, group: group.name, reason: group.paused }));
  section.hidden = view.groups.length === 0;
  const policies = new Map((view.policies ?? []).map((policy) => [policy.name, policy]));
  render(section, head("groups", "Groups", rows.length),
    h("div", { class: "cards" }, rows.slice(0, 60).map((group) => groupCard(group, policies.get(group.name), onAct))),
    rows.length > 60 ? h("p", { class: "quietline" }, `${countOf(rows.length - 60, "more group")}: search for its name.`) : null);
}

function groupCard(group, policy, onAct) {
  const others = group.takenByOthers ?? [];
  const label = `${group.used} of ${group.allowed} may be unavailable now`;
  return h("article", { key: group.name, class: `card group ${group.paused ? "paused" : ""}` },
    h("div", { class: "cardhead" }, h("h3", null, text(group.name)),
      policy ? h("button", { type: "button", class: "quiet", on: { click: () => onAct(group.paused ? "resume" : "pause", group.name) } }, group.paused ? "Resume" : "Pause") : null),
    h("p", { class: "quietline" }, `${countOf(group.members, "node")} · ${group.out} out · ${formatNumber(group.waiting)} waiting`),
    drawBudget(group, others.length, label),
    h("p", { class: "quietline" }, h("b", null, `${group.used} of ${group.allowed}`), " unavailable · ", text(group.allowedSource)),
    group.paused ? h("p", { class: "clamp" }, h("span", { class: "chip paused" }, "paused"), " ", text(group.paused)) : null,
    policy?.window ? h("p", { class: "quietline clamp" }, `window ${policy.window.open ? "open" : "closed"}`, policy.window.until ? ` until ${formatTime(parseTime(policy.window.until))}` : "", " · ", text(policy.window.windows.join("; "))) : null,
    policy?.rollout ? h("p", { class: "quietline clamp" }, text(policy.rollout)) : null,
    others.length > 0 ? h("p", { class: "clamp" }, h("span", { class: "quietline" }, "Taken by others: "), text(others.map((slot) => `${slot.node} (${slot.why})`).join(", "))) : null);
}

function drawBudget(group, others, label) {
  const slots = Math.max(group.allowed, group.used);
  if (slots === 0) return h("p", { class: "quietline" }, "No node may be unavailable.");
  if (slots > 40) {
    const part = (100 * group.used) / slots;
    return h("div", { class: "budget", role: "img", "aria-label": label }, h("span", { class: "long" }, h("span", { style: { width: `${part}%` } })));
  }
  const kind = (slot) => (slot < group.out ? "own" : slot < group.out + others ? "other" : slot < group.used ? "other" : "free");
  return h("div", { class: "budget", role: "img", "aria-label": label },
    Array.from({ length: slots }, (_, slot) => h("span", { key: slot, class: `slot ${kind(slot)} ${slot >= group.allowed ? "beyond" : ""}` })));
}

// ── hosts, remediations, schedules ──────────────────────────────────────────────────────────────

function table(label, columns, rows) {
  return h("div", { class: "card flush" }, h("div", { class: "grid", tabindex: 0, role: "group", "aria-label": `${label}, scrolls` },
    h("table", { "aria-label": label },
      h("thead", null, h("tr", null, columns.map(([title, style]) => h("th", { scope: "col", class: style }, title)))),
      h("tbody", null, rows))));
}

function opener(subject, label, onOpen) {
  return h("th", { scope: "row", class: "name" }, h("button", { type: "button", class: "open", on: { click: () => onOpen(subject) } }, text(label)));
}

const HOST_COLUMNS = [["Host", "name"], ["Power", "state"], ["Wanted", "state"], ["Proof of off", "when"], ["Node", "wideonly"], ["Why", "why"]];
const MAX_HOSTS = 200;

export function renderHosts(section, view, matches, onOpen) {
  const hosts = view.hosts ?? [];
  section.hidden = hosts.length === 0;
  if (section.hidden) return;
  const rows = hosts.filter((host) => matches({ name: `${host.namespace}/${host.name} ${host.node ?? ""}`, group: null, reason: host.reason, message: host.message }));
  render(section, head("hosts", "Hosts", rows.length),
    table("Hosts", HOST_COLUMNS, rows.slice(0, MAX_HOSTS).map((host) => h("tr", { key: `${host.namespace}/${host.name}` },
      opener(`host/${host.namespace}/${host.name}`, `${host.namespace}/${host.name}`, onOpen),
      h("td", { class: "state" }, host.power ? h("span", { class: `power ${host.power}` }, host.power) : "not read"),
      h("td", { class: "state" }, text([host.wanted, ...(host.heldOffBy ?? [])].join(" "))),
      h("td", { class: "when" }, host.offConfirmedAt ? `read twice, ${formatTime(parseTime(host.offConfirmedAt), true)}` : host.observedAt ? `read ${formatDistance(host.observedAt)}` : "–"),
      h("td", { class: "wideonly" }, host.node ? text(host.node) : "–"),
      h("td", { class: "why" }, h("div", { class: "clip" }, why(host) ?? (host.notReady ? text(host.notReady, { class: "attention" }) : null)))))),
    rows.length > MAX_HOSTS ? h("p", { class: "quietline" }, `${countOf(rows.length - MAX_HOSTS, "more host")}: search for its name.`) : null);
}

export function renderRemediations(section, view, matches, onOpen) {
  const all = view.remediations ?? [];
  section.hidden = all.length === 0;
  if (section.hidden) return;
  const rows = all.filter((row) => matches({ name: `${row.subject} ${row.node ?? ""} ${row.host ?? ""}`, group: null, reason: row.reason, message: row.message }));
  render(section, head("remediations", "Remediations", rows.length),
    h("div", { class: "cards wide" }, rows.slice(0, 100).map((row) => h("article", { key: row.subject, class: `card remediation ${row.needsSomebody ? "urgent" : ""}` },
      h("div", { class: "cardhead" },
        h("button", { type: "button", class: "open", on: { click: () => onOpen(explainSubject(row)) } }, text(row.subject)),
        row.underWay ? h("span", { class: "chip rebooting" }, "under way") : h("span", { class: "chip" }, "ended")),
      h("p", { class: "clamp" }, why(row)),
      h("ol", { class: "steps" }, (row.steps ?? []).map((step) => h("li", { key: `${step.step} ${step.at}` },
        h("span", { class: "stepname" }, step.step), h("span", { class: "quietline" }, formatTime(parseTime(step.at), true)))))))));
}

/** Those of a PowerRemediation are explained as `remediation/NS/NAME`. */
export function explainSubject(row) {
  return row.subject.replace(/^powerremediation\//, "remediation/");
}

export function renderSchedules(section, view, matches, onOpen) {
  const all = view.schedules ?? [];
  section.hidden = all.length === 0;
  if (section.hidden) return;
  const rows = all.filter((row) => matches({ name: `${row.namespace}/${row.name}`, group: null, reason: row.state, message: row.message }));
  render(section, head("schedules", "Schedules", rows.length),
    table("Schedules", [["Schedule", "name"], ["State", "state"], ["Next", "when"], ["Last", "when"], ["Message", "why"]], rows.slice(0, 200).map((row) =>
      h("tr", { key: `${row.namespace}/${row.name}` },
        opener(`schedule/${row.namespace}/${row.name}`, `${row.namespace}/${row.name}`, onOpen),
        h("td", { class: "state" }, h("span", { class: row.needsSomebody ? "attention" : "" }, row.state)),
        h("td", { class: "when" }, row.next ? formatTime(parseTime(row.next)) : "–"),
        h("td", { class: "when" }, row.last ? `${row.outcome ?? ""} ${formatTime(parseTime(row.last))}` : "–"),
        h("td", { class: "why" }, h("div", { class: "clip" }, text(row.message)))))));
}
