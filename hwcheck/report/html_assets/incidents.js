/* Incidents as fault trees: the lead, what follows from it, and the remedy. */

function remedyOf(finding) {
  const { remedy, urgency } = finding;
  if (!remedy && !urgency) return null;
  return el("p", { class: "remedy" },
    el("b", {}, remedy ? REMEDIES[remedy.kind] : "Act"),
    urgency && urgency !== "note" ? el("em", {}, URGENCIES[urgency]) : null,
    remedy && DISTURBS[remedy.disturbs] ? el("small", {}, DISTURBS[remedy.disturbs]) : null,
    remedy && remedy.role ? el("small", {}, "role ", el("code", {}, remedy.role)) : null,
    remedy ? el("span", {}, remedy.text) : null);
}

function headOf(node, finding) {
  return [badge(finding.state), el("a", { class: "check", href: node.link("finding", finding.id) }, finding.check),
    finding.subject ? el("code", { class: "subject" }, finding.subject) : null,
    el("span", { class: "message" }, finding.message)];
}

/** Followers of one family folded under its name; a few are listed as they are. */
function followers(node, findings) {
  if (findings.length <= 4) return findings.map((finding) => el("li", {}, headOf(node, finding)));
  const families = new Map();
  for (const finding of findings) families.set(finding.family, [...(families.get(finding.family) || []), finding]);
  return [...families].map(([family, of]) => el("li", {}, el("details", {},
    el("summary", {}, badge(of.map((finding) => finding.state).sort((a, b) => RANK[a] - RANK[b])[0]),
      " ", el("b", {}, family), ` ${plural(of.length, "finding")}`),
    el("ul", {}, of.map((finding) => el("li", {}, headOf(node, finding)))))));
}

function faultTree(node, incident) {
  const lead = node.byId.get(incident.lead);
  const follows = incident.follows.map((id) => node.byId.get(id)).sort(inOrder);
  return el("article", { class: `tree ${lead.state}`, "data-lead": lead.id },
    el("p", { class: "lead" }, headOf(node, lead)),
    el("p", { class: "why" }, incident.text),
    el("p", { class: "branch" }, `${plural(follows.length, "finding")} ${follows.length === 1 ? "follows" : "follow"} from it`),
    el("ul", { class: "follows" }, followers(node, follows)),
    remedyOf(lead));
}

/** A finding that stands alone is an incident of one. */
function lonely(node, finding) {
  return el("article", { class: `tree ${finding.state}` }, el("p", { class: "lead" }, headOf(node, finding)), remedyOf(finding));
}

/** Everything wrong with a node, as trees: [lead finding, element maker]. */
function troubles(node) {
  const led = new Set(node.incidents.map((incident) => incident.lead));
  const alone = node.findings.filter((finding) => ["fail", "warn", "unknown"].includes(finding.state)
    && !node.leadOf.has(finding.id) && !led.has(finding.id));
  return [
    ...node.incidents.map((incident) => [node.byId.get(incident.lead), () => faultTree(node, incident)]),
    ...alone.map((finding) => [finding, () => lonely(node, finding)]),
  ].sort(([one], [other]) => inOrder(one, other));
}

const onNode = ({ node, make }) => [el("h3", {}, el("a", { href: node.link() }, node.title)), make()];

/** Of the whole run, by the check that leads: the same fault on many nodes is one entry. */
function incidentsPage() {
  const groups = new Map();
  for (const node of NODES) {
    for (const [lead, make] of troubles(node)) {
      const key = `${lead.state} ${lead.check}`;
      groups.set(key, [...(groups.get(key) || []), { node, lead, make }]);
    }
  }
  const sorted = [...groups.values()].sort((one, other) => RANK[one[0].lead.state] - RANK[other[0].lead.state]
    || new Set(other.map((item) => item.node)).size - new Set(one.map((item) => item.node)).size);
  return [el("h1", { tabindex: "-1" }, "Incidents"),
    sorted.length ? null : el("p", { class: "empty" }, "Nothing is wrong."),
    sorted.map((items, number) => {
      const nodes = new Set(items.map((item) => item.node));
      if (items.length === 1) return el("div", { class: "single" }, onNode(items[0]));
      const body = el("div", { class: "group" });
      const show = () => body.childNodes.length || body.append(...items.flatMap(onNode));
      const open = number < 8 && items.length <= 8;
      if (open) show();
      return el("details", { class: "incident", open, toggle: show },
        el("summary", {}, badge(items[0].lead.state), el("b", {}, items[0].lead.check),
          el("span", { class: "message" }, items[0].lead.message), el("small", {}, plural(nodes.size, "node"))), body);
    })];
}
