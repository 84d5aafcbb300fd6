/* Measurements as bars against their floor, and the samples of one as a line. */

/** The bound in words such as ">= 300 GB/s": [operator, number], or null. */
function boundOf(text) {
  const match = /^\s*([<>]=?)\s*(\d+(?:\.\d+)?)/.exec(text || "");
  return match ? [match[1][0], Number(match[2])] : null;
}

const figure = (value) => (Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4))));

/** What a check said of a measurement, wherever it stands. */
function judged(node, measurement) {
  return node.findings.find((finding) => finding.subject === measurement.subject) || null;
}

const onWhat = (subject) => (subject.includes("@") ? subject.slice(subject.indexOf("@") + 1) : subject);

function bars(node, test, items) {
  const rows = items.map((item) => {
    const finding = judged(node, item);
    return { item, finding, bound: finding ? boundOf(finding.expected) : boundOf(item.conditions.bound) };
  });
  const most = Math.max(...rows.map(({ item, bound }) => Math.max(item.value, bound ? bound[1] : 0))) * 1.06 || 1;
  const [left, wide, high] = [150, 420, 20];
  const canvas = draw("svg", { class: "bars", role: "img", viewBox: `0 0 ${left + wide + 190} ${rows.length * high + 6}`,
    width: left + wide + 190, "aria-label": `${test}: ${rows.map(({ item }) => `${onWhat(item.subject)} ${figure(item.value)} ${item.unit}`).join(", ")}` });
  rows.forEach(({ item, finding, bound }, number) => {
    const state = finding ? finding.state : "pass";
    const y = number * high;
    const long = (value) => Math.max(1, (value / most) * wide);
    canvas.append(draw("text", { class: "on", x: left - 8, y: y + 14 }, short(onWhat(item.subject))),
      draw("rect", { class: `bar ${state}`, x: left, y: y + 3, width: long(item.value), height: high - 7, rx: 2 }),
      draw("text", { class: `value ${state}`, x: left + Math.max(long(item.value), bound ? long(bound[1]) : 0) + 8, y: y + 14 },
        `${state === "pass" ? "" : `${LOOKS[state].glyph} `}${figure(item.value)} ${item.unit}${bound ? ` (${bound[0]}= ${figure(bound[1])})` : ""}`));
    if (bound) {
      canvas.append(draw("path", { class: "floor", d: `M${left + long(bound[1])} ${y + 1}v${high - 3}` }));
    }
  });
  return canvas;
}

/** Numbers measured one after the other, where the conditions keep them: a list of values, or of [time, value]. */
function seriesOf(conditions) {
  for (const key of ["series", "samples", "jitter"]) {
    const list = conditions[key];
    if (Array.isArray(list) && list.length > 2) {
      const values = list.map((item) => (Array.isArray(item) ? item[1] : item));
      if (values.every((value) => typeof value === "number" && Number.isFinite(value))) return values;
    }
  }
  return null;
}

function line(item, values) {
  const [wide, high] = [560, 90];
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const [low, top] = [Math.min(0, sorted[0]), sorted[sorted.length - 1] || 1];
  const y = (value) => high - ((value - low) / (top - low || 1)) * (high - 8);
  const x = (number) => (number / (values.length - 1)) * wide;
  const marks = [["max", top], ["P99", at(0.99)], ["P50", at(0.5)]];
  const canvas = draw("svg", { class: "series", role: "img", viewBox: `0 -6 ${wide + 150} ${high + 36}`, width: wide + 150,
    "aria-label": `${item.subject}: ${marks.map(([name, value]) => `${name} ${figure(value)}`).join(", ")} ${item.unit}` },
  draw("path", { class: "samples", d: values.map((value, number) => `${number ? "L" : "M"}${x(number).toFixed(1)} ${y(value).toFixed(1)}`).join("") }));
  let above = -20;
  for (const [name, value] of marks) {
    above = Math.max(y(value) + 4, above + 12); // names of near values stand below each other
    if (name !== "max") canvas.append(draw("path", { class: "mark", d: `M0 ${y(value)}H${wide}` }));
    canvas.append(draw("text", { x: wide + 6, y: above, class: "on-line" }, `${name} ${figure(value)} ${item.unit}`));
  }
  return el("figure", {}, el("figcaption", {}, `${item.subject}, ${plural(values.length, "sample")}`),
    el("div", { class: "scroll" }, canvas));
}

/** Conditions as words; lists of samples are drawn, not listed. */
function conditionsOf(conditions) {
  return Object.entries(conditions).filter(([, value]) => !Array.isArray(value) || value.length <= 2)
    .map(([name, value]) => `${name} ${value !== null && typeof value === "object" ? JSON.stringify(value) : value}`).join(" · ");
}

function measurementsOf(node) {
  if (!node.measurements.length) return null;
  const tests = new Map();
  for (const item of node.measurements) {
    const key = `${item.name} (${item.unit})`;
    tests.set(key, [...(tests.get(key) || []), item]);
  }
  return section("Measurements", "measurements", [...tests].map(([test, items]) => {
    const words = [...new Set(items.map((item) => conditionsOf(item.conditions)))].filter(Boolean);
    return el("div", { class: "test" }, el("h3", {}, test), el("div", { class: "scroll" }, bars(node, test, items)),
      words.length ? el("p", { class: "because" }, "Conditions: ", words.slice(0, 2).join(" / "),
        words.length > 2 ? ` / and ${words.length - 2} more` : "") : null,
      items.map((item) => [item, seriesOf(item.conditions)]).filter(([, values]) => values)
        .map(([item, values]) => line(item, values)));
  }));
}

/** Of the whole run: each test as a strip of dots, a dot for each result; who is far from the others is seen at once. */
function baselinesPage() {
  const tests = new Map();
  for (const node of MACHINES) {
    for (const item of node.measurements) {
      const key = `${item.name} (${item.unit})`;
      tests.set(key, [...(tests.get(key) || []), { node, item, finding: judged(node, item) }]);
    }
  }
  return [el("h1", { tabindex: "-1" }, "Measurements"), [...tests].map(([test, items]) => strip(test, items))];
}

function strip(test, items) {
  const [wide, high] = [860, 56];
  const bound = items.map(({ finding }) => finding && boundOf(finding.expected)).find(Boolean);
  const values = [...items.map(({ item }) => item.value), ...(bound ? [bound[1]] : [])];
  const spread = Math.max(...values) - Math.min(...values) || Math.abs(values[0]) * 0.1 || 1;
  const [low, top] = [Math.min(...values) - spread * 0.05, Math.max(...values) + spread * 0.05];
  const x = (value) => ((value - low) / (top - low)) * wide;
  const canvas = draw("svg", { class: "strip", viewBox: `-8 0 ${wide + 16} ${high}`, width: wide + 16, role: "group", "aria-label": test },
    draw("path", { class: "axis", d: `M0 ${high - 18}H${wide}` }),
    draw("text", { x: 0, y: high - 4 }, figure(Math.min(...values))),
    draw("text", { x: wide, y: high - 4, class: "end" }, figure(Math.max(...values))));
  if (bound) {
    canvas.append(draw("path", { class: "floor", d: `M${x(bound[1])} 2V${high - 12}` }),
      draw("text", { x: x(bound[1]) + 4, y: high - 4, class: "floor-name" }, `${bound[0]}= ${figure(bound[1])}`));
  }
  for (const { node, item, finding } of items) {
    const state = finding ? finding.state : "pass";
    const dot = draw("circle", { class: `dot ${state}`, cx: x(item.value), cy: 20 + ((node.index * 7) % 15) - 7, r: state === "pass" ? 4 : 5.5 },
      draw("title", {}, `${node.title} ${onWhat(item.subject)}: ${figure(item.value)} ${item.unit}`));
    canvas.append(state === "pass" ? dot : draw("a", { href: node.link("finding", finding.id),
      "aria-label": `${node.title} ${onWhat(item.subject)}: ${figure(item.value)} ${item.unit}, ${state}` }, dot));
  }
  return el("div", { class: "test" }, el("h3", {}, `${test} · ${plural(items.length, "result")}`), el("div", { class: "scroll" }, canvas));
}
