"use strict";
// The charts: Vega-Lite draws those rows that the table has left, in its order, in the page's light or dark dress.

(() => {
  const drawing = JSON.parse(document.getElementById("drawing").textContent);
  const task = document.getElementById("task");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 40rem)");
  // Outlines in the box from -1 to 1, of shapes that Vega does not have.
  const outlines = {
    "star": "M0,-1L0.25,-0.33L0.95,-0.31L0.39,0.13L0.59,0.81L0,0.41L-0.59,0.81L-0.39,0.13L-0.95,-0.31L-0.25,-0.33Z",
    "pentagon": "M0,-1L0.95,-0.31L0.59,0.81L-0.59,0.81L-0.95,-0.31Z",
    "hexagon": "M0.5,-0.87L1,0L0.5,0.87L-0.5,0.87L-1,0L-0.5,-0.87Z",
    "octagon": "M0.41,-1L1,-0.41L1,0.41L0.41,1L-0.41,1L-1,0.41L-1,-0.41L-0.41,-1Z",
    "diamond-tall": "M0,-1L0.55,0L0,1L-0.55,0Z",
  };
  const mostNames = 20; // of points and lines in one chart: more of them would hide each other
  const views = new Map();
  let order = [];
  let turn = 0;

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  // A specification with what the page says in place of every text that begins with @.
  function put(spec, said) {
    if (typeof spec === "string") {
      if (spec in said) return said[spec];
      return spec.replace(/@\w+/g, (name) => (name in said ? said[name] : name));
    }
    if (Array.isArray(spec)) return spec.map((part) => put(part, said));
    if (spec === null || typeof spec !== "object") return spec;
    return Object.fromEntries(Object.entries(spec).map(([name, part]) => [name, put(part, said)]));
  }

  function dress() {
    const ink = style("ink"), faint = style("faint"), line = style("line");
    return {
      background: "transparent",
      font: "system-ui, sans-serif",
      padding: { left: 2, right: 12, top: 4, bottom: 4 },
      view: { stroke: null },
      axis: { labelColor: ink, titleColor: faint, gridColor: line, domainColor: line, tickColor: line,
        labelFontSize: 11.5, titleFontSize: 11.5, titleFontWeight: "normal", gridOpacity: 0.6 },
      legend: { labelColor: ink, labelFontSize: 11.5, symbolType: "square", symbolStrokeWidth: 0 },
      text: { color: ink, fontSize: 11 },
    };
  }

  // Round numbers between the least and the most of what is drawn along one side, so few that they can be read.
  function ticks(layers, sides) {
    const known = layers.flatMap(({ marks }) => marks.flatMap((mark) => sides.map((side) => mark[side])))
      .filter((number) => typeof number === "number" && number > 0);
    if (known.length === 0) return [];
    const least = Math.min(...known), greatest = Math.max(...known), room = Math.max(1.02, (greatest / least) ** 0.04);
    const low = least / room, high = greatest * room, most = narrow.matches ? 4 : 7;
    const decades = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) decades.push(power);
    for (const steps of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9]]) {
      const round = decades.flatMap((power) => steps.map((step) => Number(`${step}e${power}`)))
        .filter((number) => low <= number && number <= high);
      if (round.length >= 3 || steps.length > 6) return round.filter((_, at) => at % Math.ceil(round.length / most) === 0);
    }
  }

  const hasNames = ({ marks }) => marks.some((mark) => "up" in mark);

  // What stands for every text that begins with @ while these rows are drawn.
  function words(chart, rows, layers) {
    const width = document.getElementById(`chart-${chart.name}`).clientWidth;
    const columns = Math.max(2, Math.floor(width / 140));
    const names = [...new Set(rows.filter((row) => row.status === "ok").map((row) => row.name))];
    return {
      ...drawing.put,
      "@labels": rows.map((row) => row.label),
      "@x_ticks": ticks(layers, ["x", "x2"]),
      "@y_ticks": ticks(layers, ["y", "y2"]),
      "@key": names.length > 24 || layers.some(({ spec }) => spec.mark.type === "text") ? null : { orient: "top", title: null, columns, values: names },
      "@height": 24 * rows.length,
      "@label_limit": narrow.matches ? Math.round(width * 0.34) : Math.round(width * 0.4),
      "@name_room": layers.some(hasNames) ? Math.round(Math.min(150, width * 0.34)) : 0,
      "@text_limit": Math.round(width * 0.58),
      "@legend_columns": columns,
      "@ticks": narrow.matches ? 4 : 7,
      "@ink": style("ink"), "@faint": style("faint"), "@page": style("page"),
      "@shapes": drawing.put["@shapes"].map((shape) => outlines[shape] ?? shape),
      ...(dark.matches ? drawing.dark : drawing.light),
    };
  }

  const text = (value) => typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 7 }) : value;

  // A mark with what its row is called, and what is said of it: the words of its layer with its own figures.
  function named(mark, words) {
    const row = drawing.rows[mark.of];
    const series = mark.series ?? row.label;
    const said = (mark.words ?? words)?.replace(/\{([^}]*)\}/g, (_, name) => text(mark[name]));
    return { ...row, ...mark, series, ...(said === undefined ? {} : { said: `${series}: ${said}` }) };
  }

  async function draw(chart, mine) {
    const figure = document.getElementById(`chart-${chart.name}`);
    const place = figure.querySelector(".drawing");
    const wanted = (row) => !chart.of_task || row.task === drawing.tasks[Number(task?.value ?? 0)];
    const left = order.filter((each) => wanted(drawing.rows[each]));
    const view = chart.views[Number(document.getElementById(`chart-${chart.name}-view`)?.value ?? 0)];
    const wanting = new Set(left);
    const layers = view.layers.map(({ spec, fields, words, marks }) => ({
      spec,
      background: marks.length === 0,
      marks: marks.map((values) => Object.fromEntries(fields.map((name, at) => [name, values[at] ?? undefined])))
        .filter((mark) => wanting.has(mark.of)).map((mark) => named(mark, words)),
    }));
    const has = new Set(layers.flatMap(({ marks }) => marks.map((mark) => mark.of)));
    figure.querySelector(".reading").textContent = "";
    views.get(chart.name)?.finalize();
    views.delete(chart.name);
    if (has.size === 0) {
      place.textContent = left.length ? "These rows have nothing of it." : "The filters leave no row of this task.";
      return;
    }
    const rows = left.filter((each) => has.has(each)).map((each) => drawing.rows[each]);
    const takes = (row) => row.takes ?? Infinity;
    if (chart.ranked) rows.sort((one, other) => takes(one) === takes(other) ? 0 : takes(one) - takes(other));
    const names = layers.filter(hasNames);
    const crowded = names.reduce((sum, { marks }) => sum + marks.length, 0) > mostNames ? names : [];
    const drawn = layers.filter((layer) => layer.background || (layer.marks.length && !crowded.includes(layer)));
    const spec = {
      ...put({ ...view.spec, layer: drawn.map(({ spec }) => spec) }, words(chart, rows, drawn)),
      width: place.clientWidth,
      autosize: { type: "fit-x", contains: "padding" },
      config: dress(),
    };
    drawn.forEach(({ marks, background }, at) => {
      spec.layer[at].data = { values: background ? [{}] : marks };
    });
    const result = await vegaEmbed(place, spec, {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, tooltip: { theme: "custom" }, logLevel: 2,
    });
    if (mine !== turn) return result.finalize();
    views.set(chart.name, result);
    result.view.addEventListener("click", (_, item) => { if (item?.datum) go(item.datum.id); });
    place.classList.remove("vega-embed", "has-actions");
  }

  async function all() {
    const mine = ++turn;
    for (const chart of drawing.charts) {
      if (mine !== turn) return;
      await draw(chart, mine);
    }
    if (mine === turn) document.documentElement.dataset.drawn = String(mine);
  }

  let waiting = 0;
  function soon() {
    delete document.documentElement.dataset.drawn;
    clearTimeout(waiting);
    waiting = setTimeout(all, 60);
  }

  function go(row) {
    if (row === undefined) return;
    location.hash = "";
    location.hash = `row-${row}`;
  }

  // By keyboard: the arrow keys go from mark to mark and read what a pointer would be told.
  function read(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const place = event.currentTarget;
    const marks = [...place.querySelectorAll('[role="graphics-symbol"][aria-label]')]
      .filter((mark) => !mark.getAttribute("aria-roledescription")?.startsWith("line") &&
        mark.__data__?.datum?.said !== undefined);
    const now = marks.findIndex((mark) => mark.dataset.read !== undefined);
    if (event.key === "Enter" && now >= 0) return go(marks[now].__data__.datum.id);
    if (step === undefined || marks.length === 0) return;
    event.preventDefault();
    const next = now < 0 ? (step > 0 ? 0 : marks.length - 1) : (now + step + marks.length) % marks.length;
    for (const mark of marks) delete mark.dataset.read;
    marks[next].dataset.read = "";
    place.parentElement.querySelector(".reading").textContent = marks[next].__data__.datum.said;
  }

  document.addEventListener("rows", (event) => { order = event.detail; soon(); });
  task?.addEventListener("change", soon);
  for (const control of document.querySelectorAll("select[data-chart]")) control.addEventListener("change", soon);
  for (const place of document.querySelectorAll(".drawing")) place.addEventListener("keydown", read);
  dark.addEventListener("change", soon);
  let width = innerWidth;
  addEventListener("resize", () => { if (width !== innerWidth) { width = innerWidth; soon(); } });
})();
