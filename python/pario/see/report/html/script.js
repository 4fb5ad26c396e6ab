// The page is complete without this script. It adds: the choice of colours, values where the pointer or the keyboard is, zoom in time, sorting,
// filtering and folding of tables, and copying of commands.
"use strict";
document.documentElement.classList.add("script");

const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];
const SHORT = 15;  // rows of a folded table; style.css hides the others
const THEMES = { auto: "as the system", light: "light", dark: "dark" };
const stored = { get: () => { try { return localStorage.getItem("pario-theme"); } catch { return null; } },
                 set: (value) => { try { localStorage.setItem("pario-theme", value); } catch { /* a page of a file may keep nothing */ } } };
let theme = stored.get() in THEMES ? stored.get() : "auto";
const applyTheme = () => {
  if (theme === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
};
applyTheme();

document.addEventListener("DOMContentLoaded", () => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const data = JSON.parse(document.getElementById("data").textContent);
  themeButton();
  const tip = tooltip();
  titles(tip);
  if (data.timeline) timeCharts(data.timeline, tip);
  all(".chart.grid").forEach((chart) => grid(chart, data.contention[chart.id], tip));
  all("table.sortable").forEach(sortable);
  all("table.foldable").forEach(foldable);
  filter();
  all(".copy").forEach(copying);
  printing();

  function themeButton() {
    const button = document.getElementById("theme");
    const show = () => {
      button.textContent = theme[0].toUpperCase() + theme.slice(1);
      button.setAttribute("aria-label", "Colours: " + THEMES[theme]);
    };
    button.addEventListener("click", () => {
      const names = Object.keys(THEMES);
      theme = names[(names.indexOf(theme) + 1) % names.length];
      stored.set(theme); applyTheme(); show();
    });
    show();
  }

  // ---- values -------------------------------------------------------------------------------------------------------------------------
  function tooltip() {
    const box = document.getElementById("tip");
    return {
      show(text, x, y) {
        if (box.textContent !== text) box.textContent = text;
        box.hidden = false;
        const left = x + 14 + box.offsetWidth > innerWidth ? x - box.offsetWidth - 14 : x + 14;
        const top = y + 18 + box.offsetHeight > innerHeight ? y - box.offsetHeight - 12 : y + 18;
        box.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
      },
      hide() { box.hidden = true; },
    };
  }

  // <title> elements show without a script, but late and only to the mouse.
  function titles(tip) {
    all("svg title").forEach((title) => { title.parentNode.dataset.tip = title.textContent; title.remove(); });
    document.addEventListener("pointerover", (event) => {
      const shape = event.target.closest("[data-tip]");
      if (shape) tip.show(shape.dataset.tip, event.clientX, event.clientY);
    });
    document.addEventListener("pointerout", (event) => { if (event.target.closest("[data-tip]")) tip.hide(); });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hide(); });
  }

  function size(value) {
    let unit = 0;
    while (value >= 999.5 && unit < SIZES.length - 1) { value /= 1000; unit += 1; }
    return unit ? `${value.toPrecision(3)} ${SIZES[unit]}` : `${Math.round(value)} B`;
  }

  // A rectangle in a chart around the cell that is told about.
  function shape(svg, css) {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    rect.setAttribute("class", css);
    svg.append(rect);
    return { place(x, y, width, height) { rect.style.display = ""; Object.entries({ x, y, width, height }).forEach(([key, value]) => rect.setAttribute(key, value)); },
             hide() { rect.style.display = "none"; } };
  }

  // Tells the cell under the pointer, or the one the arrow keys went to. `view()` is the shown part of the columns; `keys` more keys.
  function cells(svg, rows, columns, view, text, tip, keys = () => false) {
    const cursor = shape(svg, "cursor");
    let at = { row: 0, column: 0 };
    const tell = (x, y) => {
      const height = Number(svg.dataset.rows) / rows;
      cursor.place(at.column, at.row * height, 1, height);
      tip.show(text(at.row, at.column), x, y);
    };
    const centre = () => {
      const box = svg.getBoundingClientRect(), shown = view();
      tell(box.left + (at.column + 0.5 - shown.from) / (shown.to - shown.from) * box.width, box.top + (at.row + 0.5) / rows * box.height);
    };
    svg.addEventListener("pointermove", (event) => {
      at = cell(svg, event, rows, view());
      if (at.column < columns) tell(event.clientX, event.clientY);
    });
    const leave = () => { cursor.hide(); tip.hide(); };
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] || [0, 0];
      if (!down && !right && !keys(event.key, at.column)) return;
      const shown = view(), within = (value, low, high) => Math.min(Math.max(value, low), high);
      at = { row: within(at.row + down, 0, rows - 1), column: within(at.column + right, Math.floor(shown.from), Math.ceil(shown.to) - 1) };
      event.preventDefault();
      centre();
    });
    leave();
  }

  function cell(svg, event, rows, shown) {
    const box = svg.getBoundingClientRect(), part = (value, low, length) => Math.min(Math.max((value - low) / length, 0), 0.999999);
    return { row: Math.floor(part(event.clientY, box.top, box.height) * rows),
             column: Math.floor(shown.from + part(event.clientX, box.left, box.width) * (shown.to - shown.from)) };
  }

  function grid(chart, values, tip) {
    const svg = chart.querySelector("svg"), whole = { from: 0, to: values.columns.length };
    cells(svg, values.rows.length, values.columns.length, () => whole,
          (row, column) => `${values.rows[row]}, ${values.columns[column]}: ${size(values.bytes[row][column])}`, tip);
  }

  // ---- time ---------------------------------------------------------------------------------------------------------------------------
  function timeCharts(time, tip) {
    const charts = all(".chart.time"), columns = time.written.length, rows = time.labels.length, least = Math.min(8, columns);
    const shares = Uint8Array.from(atob(time.shares), (character) => character.charCodeAt(0));
    let shown = { from: 0, to: columns };
    const moment = (column) => time.start + column * time.bin;
    const when = (column) => `${Number(moment(column).toPrecision(4))}–${Number(moment(column + 1).toPrecision(4))} s`;
    const moved = (column) => [["written", time.written], ["read", time.read]].filter(([, bins]) => bins[column])
      .map(([word, bins]) => `${word} ${size(bins[column] / time.bin)}/s`).join("\n") || "no bytes moved";
    const doing = (row, column) => time.kinds.map((kind, index) => [kind, shares[(index * rows + row) * columns + column] / 255])
      .filter(([, share]) => share > 0.004).map(([kind, share]) => `${Math.round(share * 100) || "<1"} % ${kind}`).join("\n") || "no I/O";

    function zoom(from, to) {
      const width = Math.min(Math.max(to - from, least), columns), start = Math.min(Math.max(from, 0), columns - width);
      shown = { from: start, to: start + width };
      charts.forEach((chart) => {
        const svg = chart.querySelector("svg");
        svg.setAttribute("viewBox", `${shown.from} 0 ${width} ${svg.dataset.rows}`);
        ticks(chart.querySelector(".x"));
      });
      tip.hide();
    }
    function ticks(axis) {
      const low = moment(shown.from), length = (shown.to - shown.from) * time.bin, most = Math.max(2, axis.clientWidth / 80);
      const power = 10 ** Math.floor(Math.log10(length / most));
      const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= length / most * 0.999);
      axis.textContent = "";
      for (let value = Math.ceil(low / step - 1e-9); value * step <= low + length * 1.0001; value += 1) {
        const tick = document.createElement("span");
        tick.className = "tick";
        tick.textContent = Number((value * step).toPrecision(6));
        tick.style.left = `${100 * (value * step - low) / length}%`;
        axis.append(tick);
      }
    }
    const about = (column, factor) => { const half = (shown.to - shown.from) * factor / 2; zoom(column - half, column + half); };
    const middle = () => (shown.from + shown.to) / 2, quarter = () => (shown.to - shown.from) / 4;
    const actions = { in: () => about(middle(), 0.5), out: () => about(middle(), 2), all: () => zoom(0, columns),
                      left: () => zoom(shown.from - quarter(), shown.to - quarter()), right: () => zoom(shown.from + quarter(), shown.to + quarter()) };
    all("[data-zoom]").forEach((button) => button.addEventListener("click", actions[button.dataset.zoom]));
    all("[data-from]").forEach((button) => button.addEventListener("click", () => {
      const from = (button.dataset.from - time.start) / time.bin, to = (button.dataset.to - time.start) / time.bin;
      zoom(from - (to - from) / 4, to + (to - from) / 4);
      charts[0].scrollIntoView({ block: "center" });
    }));
    const keys = (key, column) => {
      const action = { "+": () => about(column + 0.5, 0.5), "=": () => about(column + 0.5, 0.5), "-": () => about(column + 0.5, 2), "0": actions.all }[key];
      if (action) action();
      return Boolean(action);
    };
    charts.forEach((chart) => {
      const svg = chart.querySelector("svg"), map = chart.id === "timeline";
      drag(svg);
      cells(svg, map ? rows : 1, columns, () => shown, (row, column) => (map ? `${time.labels[row]}, ` : "") + `${when(column)}\n` + (map ? doing(row, column) : moved(column)), tip, keys);
    });
    addEventListener("resize", () => zoom(shown.from, shown.to));
    zoom(0, columns);

    function drag(svg) {
      const selection = shape(svg, "selection");
      let start = null;
      const end = () => { start = null; selection.hide(); };
      const column = (event) => cell(svg, event, 1, shown).column;
      svg.addEventListener("pointerdown", (event) => { if (event.pointerType === "mouse" && event.button === 0) { start = column(event); svg.setPointerCapture(event.pointerId); } });
      svg.addEventListener("pointermove", (event) => {
        if (start !== null) selection.place(Math.min(start, column(event)), 0, Math.abs(column(event) - start) + 1, svg.dataset.rows);
      });
      svg.addEventListener("pointerup", (event) => {
        const first = start, last = column(event);
        end();
        if (first !== null && Math.abs(last - first) >= 2) zoom(Math.min(first, last), Math.max(first, last) + 1);
      });
      svg.addEventListener("pointercancel", end);
      svg.addEventListener("dblclick", actions.all);
      end();
    }
  }

  // ---- tables -------------------------------------------------------------------------------------------------------------------------
  function sortable(table) {
    const heads = all("thead th", table), body = table.tBodies[0];
    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const numbers = head.classList.contains("n") || head.classList.contains("wide");
        const order = head.getAttribute("aria-sort") === (numbers ? "descending" : "ascending") ? (numbers ? "ascending" : "descending") : (numbers ? "descending" : "ascending");
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const key = (row) => { const cell = row.cells[column]; return numbers ? Number(cell.dataset.v) : cell.textContent; };
        const sign = order === "ascending" ? 1 : -1;
        const compare = numbers ? (a, b) => sign * (key(a) - key(b)) : (a, b) => sign * key(a).localeCompare(key(b), undefined, { numeric: true });
        body.append(...[...body.rows].sort(compare));
      });
    });
  }

  function foldable(table) {
    if (table.tBodies[0].rows.length <= SHORT) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "more";
    const fold = (short) => { table.classList.toggle("short", short); button.textContent = short ? `Show all ${table.tBodies[0].rows.length}` : "Show fewer"; };
    button.addEventListener("click", () => fold(!table.classList.contains("short")));
    table.closest(".scroll").after(button);
    fold(true);
  }

  function filter() {
    const input = document.getElementById("file-filter"), table = document.getElementById("file-table");
    if (!input) return;
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase(), rows = [...table.tBodies[0].rows];
      rows.forEach((row) => { row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted); });
      table.classList.toggle("filtered", Boolean(wanted));
      document.getElementById("file-count").textContent = wanted ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
    });
  }

  // ---- the rest -----------------------------------------------------------------------------------------------------------------------
  function copying(button) {
    button.addEventListener("click", async () => {
      const code = button.previousElementSibling;
      try { await navigator.clipboard.writeText(code.textContent); button.textContent = "Copied"; }
      catch { getSelection().selectAllChildren(code); button.textContent = "Selected"; }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  function printing() {
    let opened = [];
    addEventListener("beforeprint", () => { opened = all("details:not([open])"); opened.forEach((details) => { details.open = true; }); });
    addEventListener("afterprint", () => { opened.forEach((details) => { details.open = false; }); });
  }
});
