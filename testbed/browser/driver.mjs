// Drives one Chromium. Reads one JSON command a line from standard input, and prints one JSON
// answer a line: {"ok": value} or {"error": text}. It ends, with its browser, when its input ends.

import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
];
// A limit for hangs, not for slow machines.
const TIMEOUT = 120_000;
const AXE = readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
let context = null;
let page = null;
let session = null;
let complaints = [];

async function newPage({ width = 1280, height = 900, scheme = "light", scripts = true, motion = "reduce" }) {
  await context?.close();
  context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: motion, javaScriptEnabled: scripts, bypassCSP: false });
  context.setDefaultTimeout(TIMEOUT);
  page = await context.newPage();
  session = await context.newCDPSession(page);
  complaints = [];
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
}

// The debugger evaluates what the page's policy would refuse. (playwright's own evaluate does not.)
async function evaluate({ script }) {
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", { expression: script, awaitPromise: true, returnByValue: true });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  return result.value ?? null;
}

async function waitUntil({ script }) {
  const deadline = Date.now() + TIMEOUT;
  while (Date.now() < deadline) {
    // A page that is just being replaced evaluates nothing.
    if (await evaluate({ script }).catch(() => false)) return true;
    await new Promise((resume) => setTimeout(resume, 20));
  }
  const text = await evaluate({ script: "document.body?.innerText.slice(0, 2000)" }).catch(String);
  throw new Error(`it never became true; the page says: ${text}`);
}

async function findViolations() {
  await evaluate({ script: `${AXE}; true` });
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations } = await evaluate({ script: `axe.run(document, { runOnly: ${JSON.stringify(tags)}, resultTypes: ["violations"] })` });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary ?? ""}`).join(" | ")}`);
}

async function heapSize() {
  await session.send("HeapProfiler.collectGarbage");
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize } = await session.send("Runtime.getHeapUsage");
  const { nodes } = await session.send("Memory.getDOMCounters");
  return { usedSize, nodes };
}

const COMMANDS = {
  open: newPage,
  goto: async ({ url }) => { const answer = await page.goto(url); return answer?.status() ?? null; },
  click: ({ selector }) => page.click(selector),
  fill: ({ selector, text }) => page.fill(selector, text),
  press: ({ key }) => page.keyboard.press(key),
  type: ({ text }) => page.keyboard.type(text),
  wait: waitUntil,
  evaluate,
  text: ({ selector }) => page.innerText(selector),
  cookies: () => context.cookies(),
  complaints: () => complaints.splice(0),
  violations: findViolations,
  heap: heapSize,
  screenshot: async ({ path, full = false }) => { await page.screenshot({ path, fullPage: full, animations: "disabled", caret: "hide" }); },
};

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    const { command, ...options } = JSON.parse(line);
    answer = { ok: (await COMMANDS[command](options)) ?? null };
  } catch (error) {
    answer = { error: String(error.message ?? error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
process.exit(0);
