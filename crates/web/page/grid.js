// A table that has only the rows on the screen in the document, for thousands of rows. One row is
// in the order of the Tab key; the arrow keys go to the others.

import { h, render } from "./dom.js";

const ROW_HEIGHT = 44;
const OVERSCAN = 6;
const VISIBLE_ROWS = 12;

/** `columns`: {title, class, cell(row), main}; the main column's cell is the row's button. */
export function createGrid({ container, label, columns, keyOf, onOpen }) {
  const scroller = document.createElement("div");
  scroller.className = "grid";
  container.append(scroller);
  let rows = [];
  let active = 0;

  scroller.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  scroller.addEventListener("keydown", moveFocus);

  function setRows(next) {
    rows = next;
    active = Math.min(active, Math.max(0, rows.length - 1));
    draw();
  }

  function draw() {
    scroller.style.maxHeight = `${ROW_HEIGHT * (VISIBLE_ROWS + 1)}px`;
    const height = Math.max(scroller.clientHeight, ROW_HEIGHT * VISIBLE_ROWS);
    const top = Math.min(scroller.scrollTop, Math.max(0, rows.length * ROW_HEIGHT - height));
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - OVERSCAN);
    const last = Math.min(rows.length, Math.ceil((top + height) / ROW_HEIGHT) + OVERSCAN);
    const shown = rows.slice(first, last).map((row, index) => drawRow(row, first + index));
    render(scroller, h("table", { "aria-label": label, "aria-rowcount": rows.length + 1 },
      h("thead", null, h("tr", { "aria-rowindex": 1 }, columns.map((column) =>
        h("th", { scope: "col", class: column.class }, column.title)))),
      h("tbody", null,
        spacer("above", first), shown, spacer("below", rows.length - last))));
  }

  function spacer(key, count) {
    if (count <= 0) return null;
    return h("tr", { key, "aria-hidden": "true", class: "spacer" },
      h("td", { colspan: columns.length, style: { height: `${count * ROW_HEIGHT}px` } }));
  }

  function drawRow(row, index) {
    return h("tr", { key: `row ${keyOf(row)}`, "aria-rowindex": index + 2 }, columns.map((column) => {
      const cell = column.cell(row);
      if (!column.main) return h("td", { class: column.class }, h("div", { class: "clip" }, cell));
      return h("th", { scope: "row", class: column.class }, h("button", {
        type: "button", class: "open", tabindex: index === active ? 0 : -1, "data-index": index,
        on: { click: () => { active = index; onOpen(row); }, focus: () => { active = index; } },
      }, cell));
    }));
  }

  function moveFocus(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -rows.length, End: rows.length }[event.key];
    if (step === undefined || rows.length === 0) return;
    event.preventDefault();
    active = Math.min(rows.length - 1, Math.max(0, active + step));
    const top = active * ROW_HEIGHT;
    const height = scroller.clientHeight - 2 * ROW_HEIGHT;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top > scroller.scrollTop + height) scroller.scrollTop = top - height;
    draw();
    scroller.querySelector(`[data-index="${active}"]`)?.focus({ preventScroll: true });
  }

  return { setRows, draw };
}
