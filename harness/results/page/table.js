"use strict";
// The table: headings sort, filters filter, names open their rows, buttons copy commands. What the page holds is
// complete without this script; it only makes it shorter to look at.

(() => {
  const root = document.documentElement;
  root.classList.add("scripted");
  const table = document.getElementById("rows");
  const bodies = [...table.tBodies];
  const heads = [...table.tHead.rows[0].cells];
  const filters = document.getElementById("filters");
  const search = document.getElementById("search");
  const cell = (body, column) => body.rows[0].cells[column];

  function key(body, column, kind) {
    const said = cell(body, column).dataset.key;
    return said === "" ? null : kind === "number" ? Number(said) : said;
  }

  // What says nothing comes last, whichever way is sorted; rows that are alike stay in their order.
  function sort(column) {
    const head = heads[column], kind = head.dataset.kind;
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = bodies.map((body, place) => [key(body, column, kind), place, body]);
    const compared = (one, other) => kind === "number" ? one - other : one.localeCompare(other, "en", { numeric: true });
    keyed.sort((one, other) => {
      if ((one[0] === null) !== (other[0] === null)) return one[0] === null ? 1 : -1;
      const order = one[0] === null ? 0 : compared(one[0], other[0]);
      return (down ? -order : order) || one[1] - other[1];
    });
    table.append(...keyed.map((each) => each[2]));
    changed();
  }

  function left() {
    const chosen = [...filters.querySelectorAll("select")].filter((select) => select.value !== "");
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return bodies.filter((body) => {
      const text = words.length ? body.textContent.toLowerCase() : "";
      return words.every((word) => text.includes(word)) &&
        chosen.every((select) => `=${cell(body, Number(select.dataset.column)).textContent}` === select.value);
    });
  }

  function filter() {
    const kept = new Set(left());
    for (const body of bodies) body.hidden = !kept.has(body);
    document.getElementById("shown").value = `${kept.size} of ${bodies.length} rows`;
    document.getElementById("nothing").hidden = kept.size > 0;
    changed();
  }

  // The charts draw the rows that are left, in the order in which they stand.
  function changed() {
    const order = [...table.tBodies].filter((body) => !body.hidden).map((body) => Number(body.dataset.row));
    document.dispatchEvent(new CustomEvent("rows", { detail: order }));
  }

  function open(body, opened) {
    body.rows[1].classList.toggle("open", opened);
    body.querySelector("button.opens").setAttribute("aria-expanded", String(opened));
  }

  // A link to a row that a filter hides takes the filters away.
  function called() {
    const body = bodies.find((each) => `#${each.id}` === location.hash);
    if (!body) return;
    if (body.hidden) filters.reset();
    for (const other of bodies) other.classList.toggle("called", other === body);
    open(body, true);
    body.scrollIntoView({ block: "center" });
    body.querySelector("button.opens").focus({ preventScroll: true });
  }

  async function copy(button) {
    const code = button.previousElementSibling;
    let said = "Copied";
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // A page that was opened as a file may not be given the clipboard: then by way of the selection.
      getSelection().selectAllChildren(code);
      said = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
    }
    button.textContent = said;
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  }

  heads.forEach((head, column) => head.firstElementChild.addEventListener("click", () => sort(column)));
  for (const body of bodies) {
    open(body, false);
    const button = body.querySelector("button.opens");
    button.addEventListener("click", () => open(body, button.getAttribute("aria-expanded") !== "true"));
    body.querySelector("button.copy").addEventListener("click", (event) => copy(event.currentTarget));
  }
  for (const event of ["input", "change"]) filters.addEventListener(event, filter);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("reset", () => setTimeout(filter));
  document.getElementById("clear").addEventListener("click", () => { filters.reset(); search.focus(); });
  addEventListener("hashchange", called);
  // After all scripts have run, so that the charts hear of the rows, too.
  addEventListener("DOMContentLoaded", () => { filter(); called(); });
})();
