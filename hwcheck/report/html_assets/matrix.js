/* The fleet as a matrix: nodes × families. Arrow keys move in it, Enter opens. */

const fleet = { verdicts: new Set(), text: "", platform: "", check: "", order: "worst", all() {} };
const TEMPLATES = {};
const CHUNK = 100; // rows at a time: the layout of thirty thousand cells takes seconds

/** A cell of a state, copied from a template: thirty thousand of them have to be there at once. */
function cell(node, family) {
  const counts = node.families[family];
  const state = worst(counts);
  const count = ["fail", "unknown", "warn", "waived"].includes(state) ? counts[state] : 0;
  const key = `${state} ${count}`;
  TEMPLATES[key] ||= el("td", { class: state }, count
    ? el("a", { tabindex: "-1" }, el("i", {}, LOOKS[state].glyph), String(count), el("span", { class: "unseen" }, ` ${state}`))
    : [el("span", { "aria-hidden": "true" }, LOOKS[state].glyph), el("span", { class: "unseen" }, state)]);
  const made = TEMPLATES[key].cloneNode(true);
  if (count) made.firstChild.setAttribute("href", node.link("family", family));
  return made;
}

function matrixRow(node) {
  return el("tr", {}, el("th", { scope: "row" }, el("a", { href: node.link(), tabindex: "-1" }, node.title),
    node.simulated ? el("span", { class: "lab" }, "lab") : null),
  el("td", { class: `verdict ${node.verdict}` }, badge(node.verdict)), SHOWN.map((family) => cell(node, family)));
}

const rowOf = (node) => (node.row ||= matrixRow(node));

function fitting() {
  const text = fleet.text.trim().toLowerCase();
  const nodes = NODES.filter((node) => (!fleet.verdicts.size || fleet.verdicts.has(node.verdict))
    && (!fleet.platform || node.platform === fleet.platform)
    && (!fleet.check || node.findings.some((finding) => finding.check === fleet.check && finding.state !== "pass"))
    && (!text || node.words.includes(text)));
  if (fleet.order === "name") {
    return nodes.sort((a, b) => a.title.localeCompare(b.title, "en", { numeric: true }));
  }
  const weight = (node) => [RANK[node.verdict], -node.states.fail, -node.states.unknown, -node.states.warn, node.index];
  const weights = new Map(nodes.map((node) => [node, weight(node)]));
  return nodes.sort((a, b) => {
    const [one, other] = [weights.get(a), weights.get(b)];
    const at = one.findIndex((value, index) => value !== other[index]);
    return at < 0 ? 0 : one[at] - other[at];
  });
}

/** Move among the links of the matrix: one of them takes the Tab key, arrows go on from there. */
function walkMatrix(body, event) {
  const here = event.target.closest("td, th");
  const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], Home: [0, -99], End: [0, 99] };
  if (!here || !steps[event.key]) return;
  const [down, right] = steps[event.key];
  const links = (row) => [...row.querySelectorAll("a")];
  let row = here.parentElement;
  let at = links(row).indexOf(event.target);
  if (down) {
    const column = here.cellIndex;
    row = (down > 0 ? row.nextElementSibling : row.previousElementSibling) || row;
    const same = links(row).findIndex((link) => link.closest("td, th").cellIndex === column);
    at = same < 0 ? 0 : same;
  } else {
    at = Math.max(0, Math.min(links(row).length - 1, at + right));
  }
  const next = links(row)[at];
  if (!next) return;
  event.preventDefault();
  body.querySelectorAll('a[tabindex="0"]').forEach((link) => link.setAttribute("tabindex", "-1"));
  next.setAttribute("tabindex", "0");
  next.focus();
}

function matrix() {
  const body = el("tbody", { keydown: (event) => walkMatrix(body, event) });
  const said = el("p", { class: "said", role: "status" });
  const head = el("tr", {}, el("th", { scope: "col" }, "Node"), el("th", { scope: "col" }, "Verdict"),
    SHOWN.map((family) => el("th", { scope: "col", class: "family" }, el("span", {}, family))));
  const more = el("button", { type: "button", class: "more", click: () => grow(CHUNK) });
  let nodes = [];
  const grow = (count) => {
    const from = body.childElementCount;
    body.append(...nodes.slice(from, from + count).map(rowOf));
    const rest = nodes.length - body.childElementCount;
    more.hidden = !rest;
    more.textContent = `Show ${plural(rest, "more node", "more nodes")}`;
  };
  const show = () => {
    nodes = fitting();
    body.querySelectorAll('a[tabindex="0"]').forEach((link) => link.setAttribute("tabindex", "-1"));
    body.replaceChildren();
    grow(CHUNK);
    const first = body.querySelector("a");
    if (first) first.setAttribute("tabindex", "0");
    said.textContent = nodes.length === NODES.length ? "" : `${nodes.length.toLocaleString("en")} of ${plural(NODES.length, "node")}`;
    if (!nodes.length) said.textContent = "No node fits.";
  };
  show();
  new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && grow(CHUNK), { rootMargin: "400px" })
    .observe(more);
  fleet.all = () => grow(nodes.length);
  const legend = el("p", { class: "legend" }, STATES.map((state) => badge(state)),
    HIDDEN.length ? el("span", {}, `not asked or not applicable anywhere: ${HIDDEN.join(", ")}`) : null);
  return { show, view: [said, el("div", { class: "scroll wide" }, el("table", { class: "matrix" },
    el("caption", { class: "unseen" }, "Nodes by families of checks. Arrow keys move, Enter opens."),
    el("thead", {}, head), body)), more, legend] };
}
