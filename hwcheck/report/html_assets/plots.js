/* Measurements as bars against their floor, and the samples of one as a line. */

/** The bound in words such as ">= 300 GB/s": [operator, number], or null. */
function boundOf(text) {
  const match = /^\s*([<>]=?)\s*(\d+(?:\.\d+)?)/.exec(text || "");
  return match ? [match[1][0], Number(match[2])] : null;
}

const figure = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4))));

/** Whether a finding is about a measurement: by its name, or by the check of the test and what it was measured on. */
function isAbout(finding, measurement) {
  if (finding.subject === measurement.subject) return true;
  const check = `baseline.${measurement.name.replace(/^hwcheck\./, "").replaceAll(".", "_")}`;
  const on = measurement.subject.includes("@") ? onWhat(measurement.subject) : "";
  return finding.subject === on && (finding.check === check || finding.check.startsWith(`${check}_`));
}

/** What checks said of a measurement: the worst of it, and the bound it was held against; "skip" where none judged it. */
function judged(node, measurement) {
  const said = node.measured.filter((finding) => isAbout(finding, measurement));
  const bound = said.map((finding) => boundOf(finding.expected)).find(Boolean) || null;
  return { finding: said[0] || null, bound, state: said.length ? said[0].state : "skip" };
}

const onWhat = (subject) => (subject.includes("@") ? subject.slice(subject.indexOf("@") + 1) : subject);

function bars(node, test, items) {
  const rows = items.map((item) => ({ item, repeats: numbersOf(item.conditions.values), ...judged(node, item) }));
  const most = Math.max(...rows.map((row) => Math.max(row.item.value, row.bound ? row.bound[1] : 0, ...row.repeats))) * 1.06 || 1;
  const [left, wide, high] = [150, 420, 20];
  const canvas = draw("svg", { class: "bars", role: "img", viewBox: `0 0 ${left + wide + 190} ${rows.length * high + 6}`,
    width: left + wide + 190, "aria-label": `${test}: ${rows.map(({ item }) => `${onWhat(item.subject)} ${figure(item.value)} ${item.unit}`).join(", ")}` });
  rows.forEach(({ item, repeats, bound, state }, number) => {
    const y = number * high;
    const long = (value) => Math.max(1, (value / most) * wide);
    canvas.append(draw("text", { class: "on", x: left - 8, y: y + 14 }, short(onWhat(item.subject))),
      draw("rect", { class: `bar ${state}`, x: left, y: y + 3, width: long(item.value), height: high - 7, rx: 2 }),
      draw("text", { class: `value ${state}`, x: left + long(Math.max(item.value, bound ? bound[1] : 0, ...repeats)) + 8, y: y + 14 },
        `${RANK[state] < RANK.pass ? `${LOOKS[state].glyph} ` : ""}${figure(item.value)} ${item.unit}${bound ? ` (${bound[0]}= ${figure(bound[1])})` : ""}${state === "skip" ? " · not judged" : ""}`));
    if (bound) canvas.append(draw("path", { class: "floor", d: `M${left + long(bound[1])} ${y + 1}v${high - 3}` }));
    for (const repeat of repeats) {
      canvas.append(draw("path", { class: "tick", d: `M${left + long(repeat)} ${y + 6}v${high - 13}` }));
    }
  });
  return canvas;
}

/** A measurement between two parts (A>B) of each pair: rows send, columns receive. */
function pairs(node, test, items) {
  const cells = new Map(items.map((item) => [onWhat(item.subject), item]));
  const ends = (at) => [...new Set([...cells.keys()].map((key) => key.split(">")[at]))].sort();
  const value = (from, to) => {
    const item = cells.get(`${from}>${to}`);
    if (!item) return el("td", {});
    const { finding, state } = judged(node, item);
    const bad = RANK[state] < RANK.pass;
    const words = `${bad ? `${LOOKS[state].glyph} ` : ""}${figure(item.value)}`;
    return el("td", { class: state }, !bad ? words : el("a", { href: node.link("finding", finding.id) }, words));
  };
  return table(`${test}, from row to column`, ["", ...ends(1).map(short)],
    ends(0).map((from) => [el("th", { scope: "row" }, short(from)), ...ends(1).map((to) => value(from, to))]), "pairs");
}

const numbersOf = (list) => (Array.isArray(list) ? list.filter((value) => Number.isFinite(value)) : []);

/** A time series, thinned out to the highest of each stretch; the marks are those of all measurements, never of these. */
function line(item, values) {
  const [wide, high] = [300, 54];
  const top = Math.max(...values, 0) || 1;
  const y = (value) => high - (Math.min(value, top) / top) * (high - 8);
  const x = (number) => (number / (values.length - 1)) * wide;
  const marks = [["max", "max"], ["P99.9", "p999"], ["P99", "p99"], ["P50", "p50"]]
    .map(([name, key]) => [name, item.conditions[key]]).filter(([, value]) => Number.isFinite(value));
  const said = marks.map(([name, value]) => `${name} ${figure(value)}`).join(", ");
  const canvas = draw("svg", { class: "series", role: "img", viewBox: `0 -6 ${wide + 110} ${high + 30}`, width: wide + 110,
    "aria-label": `${item.subject}: ${said} us` },
  draw("path", { class: "samples", d: values.map((value, number) => `${number ? "L" : "M"}${x(number).toFixed(1)} ${y(value).toFixed(1)}`).join("") }));
  let above = -20;
  for (const [name, value] of marks) {
    above = Math.max(y(value) + 4, above + 12); // names of near values stand below each other
    if (name !== "max") canvas.append(draw("path", { class: "mark", d: `M0 ${y(value)}H${wide}` }));
    canvas.append(draw("text", { x: wide + 6, y: above, class: "on-line" }, `${name} ${figure(value)} us`));
  }
  return el("figure", {}, el("figcaption", {}, short(onWhat(item.subject))), canvas);
}

const worded = (value) => (Array.isArray(value) && !value.length ? "none"
  : value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

/** Conditions: those that all results share as words, the others as a table; what is drawn is not told again. */
function conditionsOf(items) {
  const drawn = new Set(["values", "series"]);
  const keys = [...new Set(items.flatMap((item) => Object.keys(item.conditions)))].filter((key) => !drawn.has(key));
  const texts = (key) => items.map((item) => (key in item.conditions ? worded(item.conditions[key]) : ""));
  const shared = keys.filter((key) => new Set(texts(key)).size === 1);
  const other = keys.filter((key) => !shared.includes(key));
  return [
    shared.length ? el("p", { class: "because conditions" }, shared.map((key) => [el("span", {}, key, " ", el("b", {}, texts(key)[0])), " "])) : null,
    other.length ? el("details", {}, el("summary", { class: "because" }, `${plural(other.length, "condition")} that differ`),
      table("Conditions that differ", ["", ...other], items.map((item, number) =>
        [el("th", { scope: "row" }, short(onWhat(item.subject))), ...other.map((key) => texts(key)[number])]))) : null,
  ];
}

const byPlace = (one, other) => (one.subject < other.subject ? -1 : 1);

function measurementsOf(node) {
  if (!node.measurements.length) return null;
  const tests = new Map();
  for (const item of node.measurements) {
    const key = `${item.name} (${item.unit})`;
    tests.set(key, [...(tests.get(key) || []), item]);
  }
  const left = DATA.short ? el("p", { class: "because" },
    "Conditions of measurements with which nothing is wrong are left out here; the JSON of the run has them.") : null;
  return section("Measurements", "measurements", left, [...tests].map(([test, items]) => {
    items.sort(byPlace);
    const series = items.map((item) => [item, numbersOf(item.conditions.series)]).filter(([, values]) => values.length > 2);
    return el("div", { class: "test" }, el("h3", {}, test),
      items.every((item) => onWhat(item.subject).includes(">")) ? pairs(node, test, items)
        : el("div", { class: "scroll" }, bars(node, test, items)),
      series.length ? [el("p", { class: "because" }, "Over time, the highest of each stretch:"),
        el("div", { class: "multiples" }, series.map(([item, values]) => line(item, values)))] : null,
      conditionsOf(items));
  }));
}

/** Of the whole run: each test as a strip of dots, a dot for each result; who is far from the others is seen at once. */
function baselinesPage() {
  const tests = new Map();
  for (const node of MACHINES) {
    for (const item of node.measurements) {
      const key = `${item.name} (${item.unit})`;
      if (!tests.has(key)) tests.set(key, []);
      tests.get(key).push({ node, item, ...judged(node, item) });
    }
  }
  return [el("h1", { tabindex: "-1" }, "Measurements"), [...tests].map(([test, items]) => strip(test, items))];
}

const CROWD = 1000;

/** A crowd of results as a histogram: a hundred thousand dots take seconds, and none of them could be told apart. */
function heap(places, state, wide, high) {
  const bins = new Array(120).fill(0);
  for (const place of places) bins[Math.min(119, Math.floor((place / wide) * 120))] += 1;
  const most = Math.max(...bins, 1);
  return bins.map((count, bin) => (count ? draw("rect", { class: `dot ${state}`, x: (bin * wide) / 120, width: wide / 120,
    y: high - 18 - Math.max(2, (count / most) * 34), height: Math.max(2, (count / most) * 34) },
  draw("title", {}, plural(count, "result"))) : null)).filter(Boolean);
}

function strip(test, items) {
  const [wide, high] = [860, 56];
  const bound = items.map((item) => item.bound).find(Boolean);
  const values = [...items.map(({ item }) => item.value), ...(bound ? [bound[1]] : [])].sort((a, b) => a - b);
  const [least, most] = [values[0], values[values.length - 1]];
  const spread = most - least || Math.abs(least) * 0.1 || 1;
  const [low, top] = [least - spread * 0.05, most + spread * 0.05];
  const x = (value) => ((value - low) / (top - low)) * wide;
  const canvas = draw("svg", { class: "strip", viewBox: `-8 0 ${wide + 16} ${high}`, width: wide + 16, role: "group", "aria-label": test },
    draw("path", { class: "axis", d: `M0 ${high - 18}H${wide}` }),
    bound && x(bound[1]) < 60 ? null : draw("text", { x: 0, y: high - 4 }, figure(least)),
    bound && x(bound[1]) > wide - 90 ? null : draw("text", { x: wide, y: high - 4, class: "end" }, figure(most)));
  if (bound) {
    canvas.append(draw("path", { class: "floor", d: `M${x(bound[1])} 2V${high - 12}` }),
      draw("text", { x: x(bound[1]) + 4, y: high - 4, class: "floor-name" }, `${bound[0]}= ${figure(bound[1])}`));
  }
  const crowd = items.length > CROWD ? items.filter((result) => RANK[result.state] >= RANK.pass) : [];
  canvas.append(...heap(crowd.map(({ item }) => x(item.value)), worst({ pass: crowd.some((one) => one.state === "pass") }), wide, high));
  for (const { node, item, finding, state } of crowd.length ? items.filter((one) => RANK[one.state] < RANK.pass) : items) {
    const dot = draw("circle", { class: `dot ${state}`, cx: x(item.value), cy: 20 + ((node.index * 7) % 15) - 7, r: RANK[state] < RANK.pass ? 5.5 : 4 },
      draw("title", {}, `${node.title} ${onWhat(item.subject)}: ${figure(item.value)} ${item.unit}`));
    canvas.append(RANK[state] >= RANK.pass ? dot : draw("a", { href: node.link("finding", finding.id),
      "aria-label": `${node.title} ${onWhat(item.subject)}: ${figure(item.value)} ${item.unit}, ${state}` }, dot));
  }
  return el("div", { class: "test" }, el("h3", {}, `${test} · ${plural(items.length, "result")}`), el("div", { class: "scroll" }, canvas));
}
