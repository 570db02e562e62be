// The panel of one object: what the view says, `explain` word for word, the plan, and the actions.

import { h, render, text } from "./dom.js";
import { formatAge, formatTime, parseTime } from "./format.js";
import { drawCommand } from "./summary.js";

export function createDetail(panel, { onAct, onCopy, commandOf, viewOf, onClose }) {
  let open = null;
  let opener = null;

  /** `subject`: `node/NAME` or `KIND/NAMESPACE/NAME`. */
  function show(subject) {
    if (open?.subject !== subject) opener = document.activeElement;
    open = { subject, explain: null, plan: null, seen: null };
    panel.hidden = false;
    document.body.classList.add("withdetail");
    load("explain", `/api/explain/${subject}`);
    draw();
    panel.querySelector("h2")?.focus();
  }

  function close() {
    if (!open) return;
    open = null;
    panel.hidden = true;
    document.body.classList.remove("withdetail");
    render(panel);
    if (opener?.isConnected) opener.focus();
    onClose();
  }

  async function load(part, path) {
    const shown = open;
    shown[part] = { ...shown[part], loading: true };
    draw();
    shown[part] = await fetchText(path);
    if (open === shown) draw();
  }

  /** Explains again when the view says something new of this object. */
  function update() {
    if (!open) return;
    const seen = JSON.stringify(rowsOf(open.subject, viewOf()));
    const changed = open.seen !== null && open.seen !== seen;
    open.seen = seen;
    if (changed && !open.explain?.loading) load("explain", `/api/explain/${open.subject}`);
    draw();
  }

  function draw() {
    if (!open) return;
    const { subject } = open;
    const [kind, ...name] = subject.split("/");
    const rows = rowsOf(subject, viewOf());
    render(panel,
      h("div", { class: "detailhead" },
        h("div", null, h("p", { class: "quietline" }, kind), h("h2", { tabindex: -1 }, text(name.join("/")))),
        h("button", { type: "button", class: "quiet", on: { click: close }, "aria-label": "Close the details" }, "Close")),
      drawFacts(rows),
      kind === "node" ? drawActions(name[0], rows, onAct) : null,
      drawPart("Explanation", open.explain, ["explain", subject]),
      kind === "node" ? drawPlan(name[0]) : null);
  }

  function drawPart(title, part, words) {
    return h("section", { key: title, "aria-label": title },
      h("h3", null, title),
      part?.text !== undefined ? h("pre", { tabindex: 0, dir: "auto", role: "group", "aria-label": title, class: part.failed ? "failed" : null }, part.text) : h("p", { class: "quietline" }, "Reading…"),
      drawCommand(commandOf(words), onCopy));
  }

  function drawPlan(name) {
    if (open.plan) return drawPart("What a reboot would do now", open.plan, ["check", `node/${name}`]);
    return h("p", { key: "planbutton" }, h("button", { type: "button", class: "quiet", on: { click: () => load("plan", `/api/plan/node/${name}`) } }, "What would a reboot do now?"));
  }

  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
  return { show, close, update, draw, subject: () => open?.subject ?? null };
}

/** What a command printed, or why there is nothing. */
export async function fetchText(path) {
  try {
    const answer = await fetch(path);
    const body = await answer.json();
    return { text: body.text ?? body.error ?? "no answer", failed: !answer.ok };
  } catch {
    return { text: "The server does not answer.", failed: true };
  }
}

function rowsOf(subject, view) {
  if (!view) return {};
  const [kind, first, second] = subject.split("/");
  if (kind === "host") return { host: (view.hosts ?? []).find((host) => host.namespace === first && host.name === second) };
  if (kind !== "node") return {};
  return {
    node: view.nodes.find((node) => node.name === first),
    out: view.out.find((node) => node.name === first),
    waiting: view.waiting.find((node) => node.name === first),
    estimate: view.estimate?.nodes?.[first],
  };
}

function drawFacts({ node, out, waiting, estimate, host }) {
  const facts = [];
  const add = (name, value) => { if (value) facts.push(h("div", { key: name }, h("dt", null, name), h("dd", { dir: "auto" }, value))); };
  if (node) {
    add("Status", node.status);
    add("Group", text(node.group));
    add("Phase", node.phase ? `${node.phase}${node.since ? `, for ${formatAge(node.since)}` : ""}` : null);
    add("Place in the queue", node.place ? String(node.place) : null);
    add("Lock", node.lock ? text(node.lock) : null);
    add("Asked by", out?.asked ?? waiting?.asked ? text(out?.asked ?? waiting?.asked) : null);
    add("Deadline", out?.deadline ? formatTime(parseTime(out.deadline)) : null);
    add("Not before", waiting?.notBefore ? formatTime(parseTime(waiting.notBefore)) : null);
    add("Expected", estimate ? `${formatTime(parseTime(estimate.start))} – ${formatTime(parseTime(estimate.finish))}, at the latest ${formatTime(parseTime(estimate.latestFinish))}` : null);
    add("Last reboot", node.last ? `${node.last.outcome}, ${formatTime(parseTime(node.last.finished))}` : null);
  }
  if (host) {
    add("Power", host.power ?? "not read");
    add("Wanted", host.wanted);
    add("Node", host.node ? text(host.node) : null);
    add("BMC", host.bmc ? text(host.bmc) : null);
    add("Off was read twice", host.offConfirmedAt ? formatTime(parseTime(host.offConfirmedAt), true) : null);
  }
  return facts.length > 0 ? h("dl", { class: "facts" }, facts) : null;
}

function drawActions(name, { node, out, waiting }, onAct) {
  const isHeld = out?.phase === "holding" || node?.phase === "holding";
  const offered = isHeld ? ["release"] : out || waiting ? ["abort", "hold"] : ["reboot", "hold"];
  const titles = { reboot: "Reboot", hold: "Hold", release: "Release", abort: "Abort" };
  return h("div", { class: "actions", role: "group", "aria-label": "Actions" },
    offered.map((action) => h("button", { key: action, type: "button", class: action === "abort" ? "careful" : "", on: { click: () => onAct(action, name) } }, titles[action])));
}
