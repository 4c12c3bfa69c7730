"use strict";
// Sortable tables, a choice of group and oracle, and a switch of themes. The page is whole without.

function sortBy(table, place, head) {
  const down = head.getAttribute("aria-sort");
  const numeric = head.classList.contains("number");
  // Numbers start with the greatest, texts with the first; a second press turns the order round.
  const order = down === "none" ? (numeric ? "descending" : "ascending")
    : down === "ascending" ? "descending" : "ascending";
  const sign = order === "ascending" ? 1 : -1;
  const rows = Array.from(table.tBodies[0].rows);
  const value = (row) => row.cells[place].dataset.value;
  rows.sort((a, b) => {
    const x = value(a), y = value(b);
    if (x === undefined || y === undefined) {
      return (x === undefined) - (y === undefined);  // nothing comes last, either way
    }
    if (numeric) {
      return sign * (Number(x) - Number(y));
    }
    return sign * (x < y ? -1 : x > y ? 1 : 0);
  });
  table.tBodies[0].append(...rows);
  for (const other of head.parentElement.cells) {
    other.setAttribute("aria-sort", other === head ? order : "none");
  }
}

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = table.tHead.rows[table.tHead.rows.length - 1].cells;
  Array.from(heads).forEach((head, place) => {
    head.querySelector("button").addEventListener("click", () => sortBy(table, place, head));
  });
}

// Each choice rules over the part of the page that it stands in.
function choose(form, scope) {
  const chosen = (name) => form.elements.namedItem(name)?.value ?? "";
  const group = chosen("group"), oracle = chosen("oracle");
  for (const part of scope.querySelectorAll("[data-group], [data-oracle]")) {
    const {group: mine, oracle: own} = part.dataset;
    part.hidden = Boolean((group && mine && mine !== group) || (oracle && own && own !== oracle));
  }
  // A heading over the oracles' columns is as wide as what is left of them.
  for (const table of scope.querySelectorAll("table.sortable")) {
    const heads = table.tHead.rows[table.tHead.rows.length - 1].cells;
    const own = Array.from(heads).filter((head) => head.dataset.oracle !== undefined);
    const over = table.querySelector("tr.above th:last-child");
    if (own.length && over) {
      over.colSpan = Math.max(1, own.filter((head) => !head.hidden).length);
    }
  }
  const counted = form.dataset.counted;
  const rows = scope.querySelectorAll(`table[data-key="${counted}"] tbody tr:not([hidden])`);
  form.querySelector("output").textContent = counted && group ? `${rows.length} ${counted}` : "";
}

for (const form of document.querySelectorAll("form.filter")) {
  const scope = form.closest(".filtered");
  form.hidden = false;
  form.addEventListener("change", () => choose(form, scope));
  form.addEventListener("submit", (event) => event.preventDefault());
  choose(form, scope);
}

// Pages from disk may be refused a memory.
function remembered() {
  try { return localStorage.getItem("mipmech-theme"); } catch { return null; }
}
function remember(theme) {
  try { localStorage.setItem("mipmech-theme", theme); } catch { /* then not */ }
}
function show(theme) {
  if (theme === "light" || theme === "dark") {
    document.documentElement.dataset.theme = theme;
  } else {
    delete document.documentElement.dataset.theme;
  }
}
const themes = document.querySelector("fieldset.theme");
themes.hidden = false;
const before = themes.querySelector(`input[value="${remembered() === "light" || remembered() === "dark" ? remembered() : "auto"}"]`);
before.checked = true;
show(before.value);
themes.addEventListener("change", (event) => {
  show(event.target.value);
  remember(event.target.value);
});
