/* The first page: what is wrong across the run, and the matrix. */

function tally(nodes) {
  const checks = new Map();
  for (const node of nodes) {
    for (const [lead] of troubles(node)) {
      const key = `${lead.state} ${lead.check}`;
      const entry = checks.get(key) || { state: lead.state, check: lead.check, message: lead.message, nodes: new Set() };
      entry.nodes.add(node);
      checks.set(key, entry);
    }
  }
  return [...checks.values()].sort((a, b) => RANK[a.state] - RANK[b.state] || b.nodes.size - a.nodes.size);
}

function mostOften() {
  const entries = tally(NODES);
  if (!entries.length) return el("p", { class: "empty" }, "Nothing is wrong.");
  const row = (entry) => el("li", {}, badge(entry.state), el("a", { class: "check", href: route("check", entry.check) }, entry.check),
    el("span", { class: "message" }, entry.message), el("small", {}, plural(entry.nodes.size, "node")));
  return [el("ol", { class: "often" }, entries.slice(0, 10).map(row)),
    entries.length > 10 ? el("p", {}, el("a", { href: "#incidents" }, `all ${entries.length} kinds of incident`)) : null];
}

function fleetPage() {
  const grid = matrix();
  const changed = () => grid.show();
  const counts = (verdict) => NODES.filter((node) => node.verdict === verdict).length;
  const verdicts = ["fail", "unknown", "pass"].filter(counts).map((verdict) => [verdict, LOOKS[verdict].word, counts(verdict)]);
  const platforms = [...new Set(NODES.map((node) => node.platform))].sort();
  const search = el("input", { type: "search", id: "search", placeholder: "Search nodes, checks, messages  ( / )",
    "aria-label": "Search nodes, checks and messages", "aria-keyshortcuts": "/",
    input: () => { fleet.text = search.value; changed(); } });
  search.value = fleet.text;
  const choose = (label, key, options) => {
    const box = el("select", { "aria-label": label, change: () => { fleet[key] = box.value; changed(); } },
      options.map(([value, text]) => el("option", { value }, text)));
    box.value = fleet[key];
    return box;
  };
  return [el("h1", { tabindex: "-1", class: "unseen" }, "Fleet"),
    section("What is wrong", "wrong", mostOften()),
    section(`${plural(MACHINES.length, "node")} by family`, "fleet",
      el("div", { class: "tools" }, chips("Verdict of nodes", verdicts, fleet.verdicts, changed),
        platforms.length > 1 ? choose("Platform", "platform", [["", "All platforms"], ...platforms.map((name) => [name, name])]) : null,
        choose("Order", "order", [["worst", "Worst first"], ["name", "By name"]]), search,
        fleet.check ? el("a", { class: "chip part", href: "#" }, `only ${fleet.check}`, el("b", {}, "✕")) : null),
      grid.view)];
}
