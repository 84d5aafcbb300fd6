/* Findings of a node: filters, and each with its evidence. */

function evidenceOf(finding) {
  if (!finding.source && !finding.excerpt) return null;
  const place = finding.file ? `${finding.file}${finding.line ? `:${finding.line}` : ""}` : "";
  return el("figure", { class: "evidence" },
    el("figcaption", {}, el("b", {}, "Evidence"), el("code", {}, finding.source),
      place && place !== finding.source ? el("span", {}, place) : null),
    finding.excerpt ? el("pre", { tabindex: "0", "aria-label": "Excerpt of the evidence" }, finding.excerpt) : null);
}

function detailsOf(node, finding) {
  const lead = node.byId.get(node.leadOf.get(finding.id));
  const values = [["Observed", finding.observed], ["Expected", finding.expected]].filter(([, value]) => value !== "");
  return [
    values.length ? el("dl", { class: "values" }, values.map(([name, value]) =>
      el("div", {}, el("dt", {}, name), el("dd", {}, el("code", {}, value))))) : null,
    evidenceOf(finding),
    lead ? el("p", { class: "because" }, "Follows from ", el("a", { href: node.link("finding", lead.id) },
      `${lead.check} ${lead.subject}`), ".") : null,
    remedyOf(finding),
    finding.waived ? el("p", { class: "because" },
      `Waived until ${finding.waived.expires} by ${finding.waived.owner}: ${finding.waived.reason}`) : null,
    el("p", { class: "because" }, el("code", {}, `hwcheck explain ${finding.check}`)),
  ];
}

/** One finding; what is inside is made when it is opened. */
function findingRow(node, finding, open) {
  const body = el("div", { class: "body" });
  const show = () => body.childNodes.length || body.append(...detailsOf(node, finding).filter(Boolean));
  if (open) show();
  return el("details", { class: `finding ${finding.state}`, id: `finding-${finding.id}`, open, toggle: show },
    el("summary", {}, badge(finding.state), el("b", { class: "check" }, finding.check),
      el("code", { class: "subject" }, finding.subject), el("span", { class: "message" }, finding.message || "left out here; the JSON of the run has it"),
      el("small", {}, node.leadOf.has(finding.id) ? "follows" : URGENCIES[finding.urgency] || "")), body);
}

/** Passed and skipped checks: one row each, however many subjects. */
function quietTable(rows) {
  const words = (row) => {
    const different = [...new Set(row.messages)];
    const shown = different.slice(0, 3).join(" · ");
    return different.length > 3 ? `${shown} · and ${different.length - 3} more` : shown;
  };
  return table("Passed and skipped checks", ["Status", "Check", "Subjects", DATA.spoken ? "What was seen" : ""],
    rows.map((row) => [badge(row.status), el("code", {}, row.check),
      el("td", { title: row.subjects.join(", ") }, row.subjects.length > 1 ? `${row.subjects.length}` : row.subjects[0]),
      el("td", { class: "message" }, words(row))]), "quiet");
}

/** The list with its filters; `wanted` = {finding, family, part} of the address. */
function findingsOf(node, wanted) {
  const target = wanted.finding === undefined ? null : node.byId.get(Number(wanted.finding));
  const on = new Set(["fail", "unknown", "warn", "waived"].filter((state) => node.states[state]));
  if (wanted.family && worst(node.families[wanted.family]) === "pass") on.add("pass");
  if (target) on.add(target.state);
  const box = el("div", {});
  const search = el("input", { type: "search", placeholder: "Search findings", "aria-label": "Search findings",
    input: () => list() });
  const families = el("select", { "aria-label": "Family", change: () => list() }, el("option", { value: "" }, "All families"),
    FAMILIES.filter((family) => node.families[family]).map((family) => el("option", { value: family }, family)));
  families.value = wanted.family || "";
  const part = wanted.part ? partOf(node, wanted.part) : null;
  const said = el("p", { class: "said", role: "status" });

  function list() {
    const text = search.value.toLowerCase();
    const fits = (check, words) => (!families.value || familyOf(check) === families.value)
      && (!text || `${check} ${words}`.toLowerCase().includes(text));
    const whole = node.findings.filter((finding) => on.has(finding.state) && (!part || belongs(part, finding.subject))
      && fits(finding.check, `${finding.subject} ${finding.message}`));
    const quiet = part ? [] : node.quietRows.filter((row) => on.has(row.status)
      && fits(row.check, [...row.subjects, ...row.messages].join(" ")));
    // Findings of no incident come first within their status: what follows from another one is not where to begin.
    whole.sort((a, b) => RANK[a.state] - RANK[b.state] || node.leadOf.has(a.id) - node.leadOf.has(b.id) || a.id - b.id);
    said.textContent = whole.length + quiet.length ? "" : "No finding fits.";
    box.replaceChildren(...whole.map((finding) => findingRow(node, finding, finding === target)),
      ...(quiet.length ? [quietTable(quiet)] : []));
  }

  list();
  const states = STATES.filter((state) => node.states[state]).map((state) => [state, LOOKS[state].word, node.states[state]]);
  return section("Findings", "findings",
    el("div", { class: "tools" }, chips("Status of findings", states, on, list), families, search,
      part ? el("a", { class: "chip part", href: node.link() }, `only ${part.name}`, el("b", {}, "✕")) : null), said, box);
}
