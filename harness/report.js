const table = document.querySelector("table");
const body = table.tBodies[0];
const key = cell => {
  const number = parseFloat(cell.dataset.key || cell.textContent.replace(/[~>×,\s]/g, ""));
  return Number.isNaN(number) ? cell.textContent.toLowerCase() : number;
};
table.tHead.addEventListener("click", event => {
  const heading = event.target.closest("th");
  if (!heading) return;
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const place = heading.cellIndex, sign = down ? -1 : 1;
  const compare = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
  const rows = [...body.rows].sort((a, b) => sign * compare(key(a.cells[place]), key(b.cells[place])));
  body.append(...rows);
});
document.querySelector("#filter").addEventListener("input", event => {
  const words = event.target.value.toLowerCase().split(/\s+/);
  for (const row of body.rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
});
