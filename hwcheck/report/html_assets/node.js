/* The page of one node. */

const CONFIDENCE = { "pci-id": "recognised by PCI id", name: "recognised by name", hint: "guessed from a hint",
  none: "not recognised", given: "given on the command line" };

function factsOf(node) {
  const { about } = node;
  const facts = [["Platform", `${node.platform} (${CONFIDENCE[node.confidence] || node.confidence})`], ["Product", about.product],
    ["Cohort", about.cohort], ["Evidence taken", about.taken ? when(about.taken) : ""], ["Boot", about.boot_id]];
  return el("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function neighbours(node) {
  if (NODES.length < 2) return null;
  const near = NODES.filter((other) => other === node || other.verdict !== "pass");
  const at = near.indexOf(node);
  const step = (other, text) => (other ? el("a", { href: other.link() }, `${text} ${other.title}`) : null);
  return el("p", { class: "crumbs" }, el("a", { href: "#" }, "← Fleet"),
    el("span", {}, step(near[at - 1], "previous not well:"), step(near[at + 1], "next not well:")));
}

function incidentsOf(node) {
  const trees = troubles(node);
  if (!trees.length) return null;
  const few = trees.slice(0, 12).map(([, make]) => make());
  const rest = trees.slice(12);
  return section("What is wrong", "incidents", few, rest.length ? el("details", {
    toggle: (event) => event.target.childNodes.length > 1 || event.target.append(...rest.map(([, make]) => make())),
  }, el("summary", {}, `${rest.length} more`)) : null);
}

function nodePage(node, wanted) {
  return [neighbours(node),
    el("div", { class: "title" }, el("h1", { tabindex: "-1" }, node.title), badge(node.verdict),
      node.simulated ? el("span", { class: "lab" }, "lab") : null),
    factsOf(node), incidentsOf(node), topologyOf(node), findingsOf(node, wanted), measurementsOf(node), changesOf(node),
    stagesOf(node), partsOf(node)];
}
