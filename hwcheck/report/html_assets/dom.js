/* Elements. Texts of nodes only ever become text nodes and attribute values here: no markup is parsed anywhere. */

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  for (const child of children.flat(2)) {
    if (child !== null && child !== undefined && child !== "") element.append(child);
  }
  return element;
}

/** el("td", {class: "fail", click: handler}, "text", other): null and false attributes are left out. */
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

const plural = (count, word, many) => `${count.toLocaleString("en")} ${count === 1 ? word : many || `${word}s`}`;

/** A link inside the page; each part of the route is escaped. */
const route = (...parts) => "#" + parts.map(encodeURIComponent).join("/");

/** A badge of a status: glyph and word, so that colour is never alone. */
function badge(status, text) {
  const look = LOOKS[status];
  return el("span", { class: `badge ${status}` }, el("i", { "aria-hidden": "true" }, look.glyph), text || look.word);
}

/** A row of toggle buttons; `changed` is told the set of what is on. */
function chips(label, entries, on, changed) {
  const buttons = entries.map(([key, text, count]) =>
    el("button", {
      type: "button", class: `chip ${key}`, "aria-pressed": String(on.has(key)), "data-key": key,
      click: (event) => {
        on[on.has(key) ? "delete" : "add"](key);
        event.currentTarget.setAttribute("aria-pressed", String(on.has(key)));
        changed();
      },
    }, el("i", { "aria-hidden": "true" }, LOOKS[key] ? LOOKS[key].glyph : ""), text,
    el("b", {}, count.toLocaleString("en"))));
  return el("div", { class: "chips", role: "group", "aria-label": label }, buttons);
}

function section(title, id, ...children) {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...children);
}

/** A table with a caption for screen readers; `rows` are lists of cells. */
function table(caption, heads, rows, kind) {
  const row = (cells) => el("tr", {}, cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : el("td", {}, cell))));
  return el("div", { class: "scroll" }, el("table", { class: kind || "plain" },
    el("caption", { class: "unseen" }, caption),
    el("thead", {}, el("tr", {}, heads.map((head) => el("th", { scope: "col" }, head)))),
    el("tbody", {}, rows.map(row))));
}
