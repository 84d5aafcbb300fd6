/* What was done: changes and stages; what a node is: parts and versions. */

const OUTCOMES = { changed: "pass", right: "pass", refused: "warn", stale: "warn", failed: "fail" };

function changesTable(changes, withNode) {
  return table("Changes", [...(withNode ? ["Node"] : []), "Status", "Key", "Before", "After", "For", "Why"],
    changes.map(({ node, change }) => [
      ...(withNode ? [el("a", { href: node.link() }, node.title)] : []),
      badge(OUTCOMES[change.status], change.status),
      el("td", {}, el("code", {}, change.key), el("small", {}, change.mechanism)),
      el("td", {}, change.from === null ? el("small", {}, "not told") : el("code", {}, change.from)),
      el("td", {}, el("code", {}, change.to)),
      el("td", {}, el("code", {}, change.check), change.subject ? el("small", {}, change.subject) : null),
      el("td", { class: "message" }, change.why)]));
}

function changesOf(node) {
  return node.changes.length ? section("What was changed", "changes",
    changesTable(node.changes.map((change) => ({ node, change })), false)) : null;
}

function changesPage() {
  return [el("h1", { tabindex: "-1" }, "What was changed"),
    changesTable(NODES.flatMap((node) => node.changes.map((change) => ({ node, change }))), true)];
}

function stagesOf(node) {
  if (!node.stages.length) return null;
  const begin = Date.parse(node.stages[0].began);
  const all = Math.max(1, ...node.stages.map((stage) => Date.parse(stage.ended) - begin));
  return section("Stages", "stages", table("Stages", ["Stage", "", "Took", "Outcome"], node.stages.map((stage) => {
    const [from, to] = [Date.parse(stage.began) - begin, Date.parse(stage.ended) - begin];
    return [el("b", {}, stage.stage),
      draw("svg", { class: "span", viewBox: "0 0 200 10", width: 200, height: 10, "aria-hidden": "true" },
        draw("rect", { x: (from / all) * 200, y: 2, width: Math.max(2, ((to - from) / all) * 200), height: 6, rx: 2 })),
      lasted((to - from) / 1000), el("td", { class: "message" }, stage.outcome)];
  })));
}

function partsOf(node) {
  const { gpus = [], nics = [], versions = {} } = node.about;
  const list = (name, rows) => {
    const keys = [...new Set(rows.flatMap((row) => Object.keys(row)))];
    return rows.length ? [el("h3", {}, name), table(name, keys, rows.map((row) => keys.map((key) =>
      el("td", {}, el("code", {}, row[key] === undefined ? "" : String(row[key]))))))] : [];
  };
  const told = Object.entries(versions).map(([name, version]) => ({ component: name, version }));
  if (!gpus.length && !nics.length && !told.length) return null;
  return section("Parts and versions", "parts", el("details", {},
    el("summary", {}, `${plural(gpus.length, "GPU")}, ${plural(nics.length, "adapter")}, ${plural(told.length, "version")}`),
    list("GPUs", gpus), list("Adapters", nics), list("Versions", told)));
}
