/* What the page knows: the packed run, unpacked node by node. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const RUN = DATA.run;
const FINDING = ["id", "check", "subject", "status", "urgency", "observed", "expected", "message", "source", "file", "line",
  "excerpt", "remedy", "waived"];
const TEXTS = new Set(["check", "subject", "observed", "expected", "message", "source", "file", "excerpt"]);
const RECORDS = new Set(["remedy", "waived"]);

/** How a status looks; the order is worst first. A waived finding is shown and does not count. */
const LOOKS = {
  fail: { glyph: "✕", word: "fail" },
  unknown: { glyph: "?", word: "unknown" },
  warn: { glyph: "▲", word: "warn" },
  waived: { glyph: "◇", word: "waived" },
  pass: { glyph: "✓", word: "pass" },
  skip: { glyph: "–", word: "skip" },
};
const STATES = Object.keys(LOOKS);
const RANK = Object.fromEntries(STATES.map((state, index) => [state, index]));
const URGENCIES = { now: "now", "job-end": "when the job ends", maintenance: "next maintenance", note: "note" };
const DISTURBS = { nothing: "disturbs nothing", gpu: "disturbs the GPU", board: "disturbs all GPUs of the board",
  network: "disturbs the network", node: "disturbs the whole node" };
const REMEDIES = { write: "Setting", act: "Act", hands: "Hands" };
const FAMILIES = ["platform", "driver", "gpu", "clocks", "power", "thermal", "hbm", "nvlink", "fabric", "imex", "c2c", "pcie",
  "rdma", "roce", "time", "numa", "cpu", "memory", "storage", "firmware", "bmc", "limits", "sysctl", "kernel", "xid", "sxid",
  "service", "process", "baseline", "evidence"];

const familyOf = (check) => check.slice(0, check.indexOf("."));
const inOrder = (one, other) => RANK[one.state] - RANK[other.state] || one.id - other.id;

function unpackFinding(row) {
  const finding = {};
  FINDING.forEach((name, index) => {
    const value = row[index];
    finding[name] = TEXTS.has(name) ? DATA.texts[value] : RECORDS.has(name) ? DATA.records[value] || null : value;
  });
  finding.state = finding.waived && finding.status !== "pass" && finding.status !== "skip" ? "waived" : finding.status;
  finding.family = familyOf(finding.check);
  return finding;
}

/** Rows of passed and skipped checks: {check, status, subjects, messages}; nodes share them. */
const ROWS = DATA.rows.map(([check, status, subjects, messages]) => ({
  check: DATA.texts[check], status, subjects: subjects.map((n) => DATA.texts[n]), messages: messages.map((n) => DATA.texts[n]),
}));

/** Of each shared set: family → state → number of findings. */
const SETS = DATA.sets.map((rows) => {
  const counts = {};
  for (const number of rows) {
    const { check, status, subjects } = ROWS[number];
    const of = (counts[familyOf(check)] ||= {});
    of[status] = (of[status] || 0) + subjects.length;
  }
  return counts;
});

class Node {
  constructor(packed, index) {
    Object.assign(this, packed);
    this.index = index;
    this.topology = DATA.records[packed.topology] || null;
    this.measurements = packed.measurements.map(([name, subject, value, unit, conditions]) => ({
      name: DATA.texts[name], subject: DATA.texts[subject], value, unit: DATA.texts[unit], conditions,
    }));
    this.title = packed.name || "unnamed node";
    this.findings = packed.findings.map(unpackFinding).sort(inOrder);
    this.measured = this.findings.filter((finding) => finding.family === "baseline");
    this.byId = new Map(this.findings.map((finding) => [finding.id, finding]));
    this.leadOf = new Map();
    for (const incident of packed.incidents) {
      for (const id of incident.follows) this.leadOf.set(id, incident.lead);
    }
    this.states = Object.fromEntries(STATES.map((state) => [state, 0]));
    this.families = {};
    for (const finding of this.findings) this.count(finding.family, finding.state, 1);
    for (const [family, counts] of Object.entries(SETS[packed.quiet])) {
      for (const [state, count] of Object.entries(counts)) this.count(family, state, count);
    }
    this.isFleet = packed.platform === "fleet";
  }

  count(family, state, number) {
    this.states[state] += number;
    const of = (this.families[family] ||= {});
    of[state] = (of[state] || 0) + number;
  }

  get quietRows() { return DATA.sets[this.quiet].map((number) => ROWS[number]); }

  /** What the search box looks through: name, platform, and the words of what is not well. */
  get words() {
    this.text ||= [this.title, this.platform, this.about.cohort || "",
      ...this.findings.filter((finding) => RANK[finding.state] < RANK.pass).map((finding) => `${finding.check} ${finding.subject} ${finding.message}`)].join("\n").toLowerCase();
    return this.text;
  }

  link(...parts) { return route("node", this.key, ...parts); }
}

const NODES = DATA.nodes.map((packed, index) => new Node(packed, index));
const MACHINES = NODES.filter((node) => !node.isFleet);
const BY_KEY = new Map(NODES.map((node) => [node.key, node]));
const worst = (counts) => STATES.find((state) => counts && counts[state]) || "skip";
const SHOWN = FAMILIES.filter((family) => NODES.some((node) => worst(node.families[family]) !== "skip"));
const HIDDEN = FAMILIES.filter((family) => !SHOWN.includes(family) && NODES.some((node) => node.families[family]));

function when(seconds) {
  return new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

function lasted(seconds) {
  if (!(seconds >= 0)) return "";
  if (seconds < 90) return `${Math.round(seconds * 10) / 10} s`;
  return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}
