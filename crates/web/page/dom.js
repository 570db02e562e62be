// Makes the document follow a description of it. Texts become text nodes only, so that no name or
// message of the cluster can become markup.

/** One element: `h("td", { class: "name" }, "n1")`. Children: elements, texts, nothing, lists. */
export function h(tag, props, ...children) {
  const { key = null, on = null, style = null, ...attributes } = props ?? {};
  return { tag, key, on, style, attributes, children: children.flat(3).filter(isShown) };
}

function isShown(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}

/** Makes these the children of `parent`. Elements of the same key and tag stay, with their focus. */
export function render(parent, ...children) {
  const next = children.flat(3).filter(isShown).map((child) => (typeof child === "object" ? child : cleanText(child)));
  const old = [...parent.childNodes];
  const byKey = new Map();
  const unkeyed = [];
  for (const node of old) {
    const key = node.described?.key ?? null;
    if (key === null) unkeyed.push(node);
    else byKey.set(key, node);
  }
  let position = 0;
  const nodes = next.map((child) => {
    if (typeof child !== "object") return takeText(unkeyed, child);
    const found = child.key === null ? takeUnkeyed(unkeyed, child.tag) : byKey.get(child.key);
    if (found && found.described?.tag === child.tag) return found;
    return createElement(child);
  });
  const kept = new Set(nodes);
  for (const node of old) if (!kept.has(node)) node.remove();
  nodes.forEach((node, index) => {
    const child = next[index];
    if (typeof child === "object") update(node, child);
    else if (node.data !== child) node.data = child;
    if (parent.childNodes[position] !== node) parent.insertBefore(node, parent.childNodes[position] ?? null);
    position += 1;
  });
}

function takeText(unkeyed, text) {
  const index = unkeyed.findIndex((node) => node.nodeType === Node.TEXT_NODE);
  if (index < 0) return document.createTextNode(text);
  return unkeyed.splice(index, 1)[0];
}

function takeUnkeyed(unkeyed, tag) {
  const index = unkeyed.findIndex((node) => node.described?.tag === tag);
  return index < 0 ? null : unkeyed.splice(index, 1)[0];
}

function createElement(child) {
  const element = document.createElement(child.tag);
  element.described = { tag: child.tag, key: child.key, attributes: {}, style: {}, on: {} };
  return element;
}

function update(element, child) {
  const before = element.described;
  updateAttributes(element, before.attributes, child.attributes);
  updateStyle(element, before.style, child.style ?? {});
  updateListeners(element, before.on, child.on ?? {});
  element.described = {
    tag: child.tag, key: child.key, attributes: child.attributes, style: child.style ?? {}, on: child.on ?? {},
  };
  render(element, child.children);
}

function updateAttributes(element, before, after) {
  for (const name of Object.keys(before)) if (!isSet(after[name])) element.removeAttribute(name);
  for (const [name, value] of Object.entries(after)) {
    if (!isSet(value) || before[name] === value) continue;
    element.setAttribute(name, value === true ? "" : cleanText(value));
  }
}

function isSet(value) {
  return value !== undefined && value !== null && value !== false;
}

function updateStyle(element, before, after) {
  for (const name of Object.keys(before)) if (!(name in after)) element.style.removeProperty(name);
  for (const [name, value] of Object.entries(after)) {
    if (before[name] !== value) element.style.setProperty(name, value);
  }
}

function updateListeners(element, before, after) {
  for (const name of Object.keys(before)) if (!(name in after)) element[`on${name}`] = null;
  for (const [name, listener] of Object.entries(after)) element[`on${name}`] = listener;
}

/** A text of the cluster: isolated, so that it cannot turn the direction of what is around it. */
export function text(value, props) {
  return h("span", { dir: "auto", ...props, class: `t ${props?.class ?? ""}`.trim() }, String(value ?? ""));
}

/** Without control characters, and without those that change the direction of other text. */
function cleanText(value) {
  return String(value ?? "").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, " ");
}
