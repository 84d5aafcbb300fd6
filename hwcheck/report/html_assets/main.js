/* Addresses, the theme, and keys. */

const MAIN = document.getElementById("main");
const THEMES = ["auto", "light", "dark"];

function tabs() {
  const entries = [["#", NODES.length > 1 ? "Fleet" : "Node"], ["#incidents", "Incidents"]];
  if (MACHINES.some((node) => node.measurements.length)) entries.push(["#measurements", "Measurements"]);
  if (NODES.some((node) => node.changes.length)) entries.push(["#changes", "Changes"]);
  const here = location.hash.split("/")[0] || "#";
  document.getElementById("tabs").replaceChildren(...entries.map(([href, text]) =>
    el("a", { href, "aria-current": href === here ? "page" : null }, text)));
}

/** The page of an address: #node/KEY/finding/3, #check/ID, #incidents ...; an unknown one leads to the first page. */
function pageOf(parts) {
  const [view, key, kind, value] = parts;
  if (view === "node" && BY_KEY.has(key)) return nodePage(BY_KEY.get(key), kind ? { [kind]: value } : {});
  if (view === "incidents") return incidentsPage();
  if (view === "measurements") return baselinesPage();
  if (view === "changes") return changesPage();
  fleet.check = view === "check" ? key : "";
  if (!NODES.length) return [el("p", { class: "empty" }, "This run has no nodes.")];
  return NODES.length > 1 ? fleetPage() : nodePage(NODES[0], {});
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function show(first) {
  const parts = location.hash.slice(1).split("/").map(decoded);
  MAIN.replaceChildren(...pageOf(parts).flat(2).filter(Boolean));
  document.body.dataset.view = parts[0] || "fleet";
  tabs();
  const target = parts[2] === "finding" ? document.getElementById(`finding-${parts[3]}`) : null;
  const list = parts[2] || parts[0] === "check" ? document.getElementById(parts[0] === "check" ? "fleet" : "findings") : null;
  if (target || list) {
    (target || list).scrollIntoView({ block: target ? "center" : "start" });
    (target ? target.querySelector("summary") : list.querySelector("h2")).focus({ preventScroll: true });
  } else if (!first) {
    scrollTo(0, 0);
    (MAIN.querySelector("h1") || MAIN).focus({ preventScroll: true });
  }
}

function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = `Theme: ${theme}`;
  button.dataset.now = theme;
}

document.getElementById("theme").addEventListener("click", (event) => {
  setTheme(THEMES[(THEMES.indexOf(event.currentTarget.dataset.now || "auto") + 1) % THEMES.length]);
});
document.addEventListener("keydown", (event) => {
  const search = document.querySelector('input[type="search"]');
  if (event.key === "/" && search && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    search.focus();
  }
});
/* On paper nothing can be opened, and nothing more be shown. */
addEventListener("beforeprint", () => {
  fleet.all();
  document.querySelectorAll("main details").forEach((item) => { item.open = true; });
});
document.querySelector(".skip-link").addEventListener("click", (event) => {
  event.preventDefault();
  MAIN.focus();
});
addEventListener("hashchange", () => show(false));
show(true);
