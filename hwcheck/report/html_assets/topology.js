/* The picture of a node: NUMA nodes, PCIe switches, GPUs, adapters and NVLink, with faults on them. */

const LEAF = { width: 82, height: 56, gap: 6 };
const LEVEL = 46;
const TOP = 34;
const KINDS = { gpu: "GPU", nic: "adapter", netdev: "adapter" };

const short = (address) => address.replace(/\b0000:/g, "");

/** Names under which findings may speak of a part. */
function partOf(node, id) {
  const part = node.topology && node.topology.parts.find((item) => item.id === id);
  if (!part) return { name: id, names: new Set([id]) };
  const told = (node.about.gpus || []).find((gpu) => gpu.id === id);
  const name = part.kind === "gpu" && told && told.index !== undefined ? `GPU ${told.index}`
    : part.kind === "drive" ? "drive" : part.id;
  return { ...part, name, names: new Set([part.id, part.address, ...part.also].filter(Boolean)) };
}

/** Whether a subject is a part, a port of it (mlx5_0/1), or a measurement on it (hwcheck.h2d@0000:18:00.0). */
function belongs(part, subject) {
  const on = subject.slice(subject.indexOf("@") + 1);
  return [subject, on, subject.split("/")[0], ...on.split(">")].some((name) => part.names.has(name));
}

function stateOf(node, part) {
  const counts = {};
  for (const finding of node.findings) {
    if (finding.subject && RANK[finding.state] < RANK.pass && belongs(part, finding.subject)) counts[finding.state] = (counts[finding.state] || 0) + 1;
  }
  return { state: Object.keys(counts).length ? worst(counts) : "pass", counts };
}

/** Trees of ports and parts below one NUMA node; sides of a switch that lead to a part are not drawn as boxes. */
function forest(node, parts) {
  const ports = new Map(node.topology.ports.map((port) => [port.id, port]));
  const boxes = new Map();
  const tops = [];
  const boxAbove = (id) => {
    let port = ports.get(id);
    while (port && port.kind === "down") port = ports.get(port.parent);
    if (!port) return null;
    if (!boxes.has(port.id)) {
      const box = { port, children: [] };
      boxes.set(port.id, box);
      const above = boxAbove(port.parent);
      (above ? above.children : tops).push(box);
    }
    return boxes.get(port.id);
  };
  for (const part of parts) {
    const above = boxAbove(part.parent);
    (above ? above.children : tops).push({ part, children: [] });
  }
  return tops;
}

const depthOf = (tree) => (tree.part ? 0 : 1 + Math.max(0, ...tree.children.map(depthOf)));

function place(tree, left, level, bottom) {
  tree.y = tree.part ? bottom : TOP + level * LEVEL;
  if (tree.part) {
    [tree.left, tree.right] = [left, left + LEAF.width];
  } else {
    let x = left;
    for (const child of tree.children) {
      place(child, x, level + 1, bottom);
      x = child.right + LEAF.gap;
    }
    [tree.left, tree.right] = [left, x - LEAF.gap];
  }
  tree.x = (tree.left + tree.right) / 2;
}

function leaf(node, tree) {
  const part = partOf(node, tree.part.id);
  const { state, counts } = stateOf(node, part);
  const width = part.link ? `x${part.link[0]}` : "";
  const speed = part.link && part.link[2] ? ` · ${part.link[2]} GT/s` : "";
  const said = Object.entries(counts).map(([name, count]) => `${count} ${name}`).join(", ") || "nothing wrong";
  const narrow = part.link && part.link[0] < part.link[1];
  const box = draw("g", { class: `part ${part.kind} ${state}`, transform: `translate(${tree.left} ${tree.y})` },
    draw("title", {}, `${part.name} ${part.address}: ${said}`),
    draw("rect", { width: LEAF.width, height: LEAF.height, rx: 4 }),
    draw("text", { x: 8, y: 17, class: "name" }, part.name === part.address ? KINDS[part.kind] : part.name.slice(0, 9)),
    draw("text", { x: 8, y: 32 }, short(part.address)),
    draw("text", { x: 8, y: 46, class: narrow ? "narrow" : "" }, width + speed),
    state === "pass" ? null : draw("text", { x: LEAF.width - 8, y: 17, class: "glyph" }, LOOKS[state].glyph));
  if (state === "pass") return box;
  return draw("a", { href: node.link("part", part.id), "aria-label": `${part.name} ${part.address}: ${said}` }, box);
}

function wires(node, tree, canvas) {
  for (const child of tree.children) {
    const from = tree.y + 24;
    const middle = child.part ? child.y - 12 : (from + child.y) / 2;
    const bad = child.part && node.findings.some((finding) => finding.family === "pcie" && finding.state === "fail"
      && belongs(partOf(node, child.part.id), finding.subject));
    canvas.append(draw("path", { class: bad ? "wire fail" : "wire", d: `M${tree.x} ${from}V${middle}H${child.x}V${child.y}` }));
    wires(node, child, canvas);
  }
  if (tree.part) canvas.append(leaf(node, tree));
  else canvas.append(portBox(node, tree));
}

function portBox(node, tree) {
  const { port } = tree;
  const finding = node.findings.find((item) => item.subject === port.id && RANK[item.state] < RANK.pass);
  const wide = Math.max(96, tree.right - tree.left);
  const word = port.kind === "root" ? "root port" : port.kind === "up" ? "PCIe switch" : "bridge";
  const roomy = wide >= 140;
  return draw("g", { class: `port ${port.kind} ${finding ? finding.state : ""}`,
    transform: `translate(${tree.x - Math.min(wide, tree.right - tree.left) / 2} ${tree.y})` },
  draw("title", {}, `${word} ${port.id}${finding ? `: ${finding.message}` : ""}`),
  draw("rect", { width: tree.right - tree.left, height: 24, rx: port.kind === "root" ? 12 : 3 }),
  draw("text", { x: (tree.right - tree.left) / 2, y: 16 }, roomy ? `${word} ${short(port.id)}` : short(port.id)));
}

/** One bar for NVLink below all GPUs, with the number of links of each; a GPU that lost links is marked. */
function nvlinkBar(node, gpus, width, y, canvas) {
  const wired = gpus.filter(({ part }) => part.nvlinks);
  if (!wired.length) return 0;
  const switches = node.topology.parts.filter((part) => part.kind === "nvswitch");
  for (const { part, x, y: top } of wired) {
    const [up, all] = part.nvlinks;
    const bad = up < all || node.findings.some((finding) => finding.subject === part.id && finding.state === "fail"
      && ["nvlink", "fabric"].includes(finding.family));
    canvas.append(draw("path", { class: bad ? "nvlink fail" : "nvlink", d: `M${x} ${top + LEAF.height}V${y}` }),
      draw("text", { class: bad ? "links fail" : "links", x: x + 5, y: y - 8 }, up < all ? `✕ ${up} of ${all}` : `${up}`));
  }
  canvas.append(draw("rect", { class: "fabric", x: 0, y, width, height: 30, rx: 4 }),
    draw("text", { class: "fabric-name", x: 12, y: y + 19 }, "NVLink"));
  const room = Math.min(130, (width - 90) / Math.max(1, switches.length));
  switches.forEach((item, number) => {
    const { state, counts } = stateOf(node, partOf(node, item.id));
    canvas.append(draw("g", { class: `nvswitch ${state}`, transform: `translate(${84 + number * room} ${y + 4})` },
      draw("title", {}, `NVSwitch ${item.id}: ${Object.keys(counts).length ? state : "nothing wrong"}`),
      draw("rect", { width: room - 8, height: 22, rx: 3 }),
      draw("text", { x: 8, y: 15 }, `${room > 100 ? "NVSwitch " : ""}${short(item.id)}`)));
  });
  return 40;
}

function picture(node) {
  const { numa, parts } = node.topology;
  const drawn = parts.filter((part) => part.kind !== "nvswitch" && (part.parent || part.numa !== null));
  const groups = [...numa.map((item) => item.id), null].map((id) => ({
    id, told: numa.find((item) => item.id === id),
    trees: forest(node, drawn.filter((part) => (numa.some((item) => item.id === part.numa) ? part.numa : null) === id)),
  })).filter((group) => group.trees.length);
  if (!groups.length) return null;
  const bottom = TOP + Math.max(...groups.flatMap((group) => group.trees.map(depthOf))) * LEVEL + 6;
  const canvas = draw("svg", { class: "topology", role: "group", "aria-label": "Topology of the node" });
  const gpus = [];
  let x = 0;
  for (const group of groups) {
    const left = x;
    x += 10;
    for (const tree of group.trees) {
      place(tree, x, 0, bottom);
      x = tree.right + 12;
    }
    x -= 2;
    canvas.append(draw("rect", { class: "numa", x: left, y: 0, width: x - left, height: bottom + LEAF.height + 10, rx: 6 }),
      draw("text", { class: "numa-name", x: left + 10, y: 19 }, group.told
        ? `NUMA ${group.id} · ${group.told.cpus} CPUs` : group.id === null ? "NUMA node not told" : `NUMA ${group.id}`));
    const walk = (tree) => {
      if (tree.part && tree.part.kind === "gpu") gpus.push({ part: tree.part, x: tree.x, y: tree.y });
      tree.children.forEach(walk);
    };
    group.trees.forEach((tree) => { wires(node, tree, canvas); walk(tree); });
    x += 14;
  }
  x -= 14;
  const y = bottom + LEAF.height + 36;
  const more = nvlinkBar(node, gpus, x, y, canvas);
  canvas.setAttribute("viewBox", `-1 -1 ${x + 2} ${y + (more || -24) + 2}`);
  canvas.setAttribute("width", Math.min(x + 2, 1500));
  return canvas;
}

function topologyOf(node) {
  if (!node.topology || !node.topology.parts.length) return null;
  const figure = picture(node);
  const lost = node.topology.parts.filter((part) => part.kind !== "nvswitch" && !part.parent && part.numa === null);
  const { matrix } = node.topology;
  return section("Topology", "topology",
    figure ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Topology picture" }, figure) : null,
    lost.length ? el("p", { class: "because" }, "Place not told: ", lost.map((part, number) =>
      [number ? ", " : "", el("a", { href: node.link("part", part.id) }, part.id)])) : null,
    matrix ? el("details", {}, el("summary", {}, "Who reaches whom (topo -m)"),
      table("Matrix of topo -m", ["", ...matrix.of.map(short)], matrix.rows.map((row, number) =>
        [el("th", { scope: "row" }, short(matrix.of[number])), ...row.split(" ")]))) : null);
}
