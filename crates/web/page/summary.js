// On top: how far it is, when it will be finished, and what a person has to do.

import { h, render, text } from "./dom.js";
import { countOf, formatNumber } from "./format.js";

export function renderSummary(section, view, { onOpen, onCopy }) {
  const isCalm = view.needsPerson.length === 0;
  section.classList.toggle("urgent", !isCalm);
  render(section,
    h("h1", { id: "sentence", dir: "auto", class: "sentence" }, view.sentence),
    drawProgress(view.counts),
    isCalm ? null : h("div", { class: "tasks" },
      h("h2", null, `${countOf(view.needsPerson.length, "thing")} ${view.needsPerson.length === 1 ? "needs" : "need"} a person`),
      h("ul", null, view.needsPerson.map((task) => drawTask(task, onOpen, onCopy)))),
    (view.unreadable ?? []).map((line) => h("p", { class: "warning", dir: "auto" }, `Incomplete: ${line}`)));
}

function drawProgress({ nodes, done, out, waiting, rollout }) {
  if (rollout === 0) {
    return h("p", { class: "quietline" }, `${countOf(nodes, "node")}. Nothing waits.`);
  }
  const share = (number) => ({ "flex-grow": String(number) });
  const parts = [["done", done], ["out", out], ["waiting", waiting]];
  const label = `${done} done, ${out} out, ${waiting} waiting, of ${rollout}`;
  return h("div", { class: "progress" },
    h("div", { class: "meter", role: "img", "aria-label": label },
      parts.map(([name, number]) => number > 0 ? h("span", { key: name, class: `part ${name}`, style: share(number) }) : null)),
    h("ul", { class: "legend" },
      parts.map(([name, number]) => h("li", { class: name }, h("b", null, formatNumber(number)), ` ${name}`)),
      h("li", { class: "total" }, h("b", null, formatNumber(nodes)), " nodes in all")));
}

function drawTask(task, onOpen, onCopy) {
  const [kind] = task.subject.split("/");
  const opens = ["node", "host", "machine"].includes(kind);
  return h("li", { key: `${task.subject} ${task.reason}`, class: "task" },
    h("p", { class: "taskhead" },
      opens
        ? h("button", { type: "button", class: "open", on: { click: () => onOpen(task.subject) } }, text(task.subject))
        : text(task.subject, { class: "strong" }),
      h("span", { class: "reason" }, text(task.reason))),
    h("p", { class: "long", dir: "auto" }, text(task.message)),
    task.nextStep ? h("p", { class: "long next", dir: "auto" }, text(task.nextStep)) : null,
    task.command ? drawCommand(task.command, onCopy) : null);
}

/** A command to type, with a button that copies it. */
export function drawCommand(command, onCopy) {
  return h("div", { class: "command" },
    h("code", { tabindex: 0, role: "group", "aria-label": "Command" }, command),
    h("button", { type: "button", class: "quiet", on: { click: (event) => onCopy(command, event.currentTarget) } }, "Copy"));
}
