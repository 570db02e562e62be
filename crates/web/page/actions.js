// The question before an action: what it does, the plan, the command line that does the same.

import { h, render } from "./dom.js";
import { fetchText } from "./detail.js";
import { drawCommand } from "./summary.js";

const ACTIONS = {
  reboot: { title: "Reboot", of: "node", reason: true, plan: true, text: "The node takes its turn for the lock, is drained, reboots, and comes back into service." },
  hold: { title: "Hold", of: "node", reason: true, plan: true, text: "The node takes its turn for the lock, is drained, and stays out of service until it is released." },
  release: { title: "Release", of: "node", text: "The node comes back into service." },
  abort: { title: "Abort the reboot of", of: "node", reason: true, force: true, text: "The reboot is undone: the node is uncordoned and its lock released." },
  pause: { title: "Pause policy", of: "policy", reason: true, required: true, text: "No reboot begins, and a drain under way is undone, until the policy is resumed." },
  resume: { title: "Resume policy", of: "policy", text: "Reboots go on." },
};

export function createActions(dialog, { aboutOf, commandOf, onCopy, onDone }) {
  let form = null;
  // Only for as long as this page is open: never stored, never in an address.
  let token = "";

  function ask(action, name) {
    form = { action, name, reason: "", force: false, plan: null, result: null, sending: false };
    draw();
    dialog.showModal();
    if (ACTIONS[action].plan) loadPlan(form);
  }

  async function loadPlan(asked) {
    asked.plan = await fetchText(`/api/plan/node/${asked.name}`);
    if (form === asked) draw();
  }

  /** The same words as the server's. */
  function words() {
    const { action, name, reason, force } = form;
    const subject = ACTIONS[action].of === "node" ? `node/${name}` : name;
    const all = [action, subject];
    if (action === "abort") all.push("--no-wait");
    if (reason.trim() !== "" || ACTIONS[action].required) all.push(`--reason=${reason.trim()}`);
    if (force) all.push("--yes");
    return all;
  }

  async function send(event) {
    event.preventDefault();
    const sent = form;
    sent.sending = true;
    sent.result = null;
    draw();
    const body = { reason: sent.reason };
    if (ACTIONS[sent.action].force) body.althoughRebooting = sent.force;
    const headers = { "Content-Type": "application/json" };
    if (aboutOf().needsToken) headers.Authorization = `Bearer ${token.trim()}`;
    try {
      const answer = await fetch(`/api/actions/${sent.action}/${sent.name}`, { method: "POST", headers, body: JSON.stringify(body) });
      const output = await answer.json();
      sent.result = { good: answer.ok && output.outcome === "succeeded", text: output.text ?? output.error ?? "no answer" };
    } catch {
      sent.result = { good: false, text: "The server does not answer. Look whether the action had an effect before you repeat it." };
    }
    sent.sending = false;
    if (form === sent) draw();
    onDone(sent.result.good, sent.result.text);
    dialog.querySelector(".result")?.focus();
  }

  function close() {
    dialog.close();
  }

  function draw() {
    const { action, name, result } = form;
    const about = ACTIONS[action];
    render(dialog, h("form", { key: `${action} ${name}`, on: { submit: send } },
      h("h2", { id: "dialog-title", dir: "auto" }, `${about.title} ${name}`),
      h("p", null, about.text),
      about.reason ? field("reason", about.required ? "Reason (needed)" : "Reason", "text", form.reason, { maxlength: 500, required: about.required, autocomplete: "off" }) : null,
      about.force ? h("label", { class: "check" }, h("input", { type: "checkbox", on: { change: (event) => { form.force = event.target.checked; draw(); } } }), "Also if the machine may be going down already") : null,
      aboutOf().needsToken ? tokenField() : null,
      about.plan ? drawPlan() : null,
      h("p", { class: "quietline" }, "The same by hand:"),
      drawCommand(commandOf(words()), onCopy),
      result ? h("pre", { tabindex: 0, role: "group", "aria-label": "Result", class: `result ${result.good ? "good" : "failed"}` }, result.text) : null,
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "quiet", on: { click: close } }, result?.good ? "Close" : "Cancel"),
        result?.good ? null : h("button", { type: "submit", class: action === "abort" ? "careful" : "primary", disabled: form.sending }, form.sending ? "Sending…" : about.title))));
  }

  function field(id, label, type, value, more) {
    return h("label", { class: "field column", for: id }, label,
      h("input", { id, type, ...more, on: { input: (event) => { form.reason = event.target.value; draw(); } } }));
  }

  function tokenField() {
    return h("label", { class: "field column", for: "token" }, "Your own token",
      h("input", { id: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false", "aria-describedby": "token-hint", on: { input: (event) => { token = event.target.value; } } }),
      h("span", { id: "token-hint", class: "quietline" }, "This page may only look. The action is done with your token, which is used once and not stored: kubectl create token NAME"));
  }

  function drawPlan() {
    return h("details", { open: true }, h("summary", null, "What would happen now"),
      form.plan ? h("pre", { tabindex: 0, role: "group", "aria-label": "Plan", dir: "auto", class: form.plan.failed ? "failed" : null }, form.plan.text) : h("p", { class: "quietline" }, "Reading…"));
  }

  dialog.addEventListener("close", () => {
    form = null;
    token = "";
    render(dialog);
  });
  return { ask };
}
