// The page is complete without this script. It adds: the choice of colours, values at the pointer
// or the keyboard cursor, zoom in time, sorting, filtering and folding of tables, and copying of
// commands.
"use strict";
document.documentElement.classList.add("script");

const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];
const SHORT = 15;  // rows of a folded table; style.css hides the others
const THEMES = { auto: "as the system", light: "light", dark: "dark" };
// Browsers may deny storage to a page that is a local file.
const stored = {
  get: () => { try { return localStorage.getItem("pario-theme"); } catch { return null; } },
  set: (value) => { try { localStorage.setItem("pario-theme", value); } catch { /* see above */ } },
};
let theme = stored.get() in THEMES ? stored.get() : "auto";
const applyTheme = () => {
  const { dataset } = document.documentElement;
  if (theme === "auto") delete dataset.theme; else dataset.theme = theme;
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

  // ---- values ----
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
    all("svg title").forEach((title) => {
      title.parentNode.dataset.tip = title.textContent;
      title.remove();
    });
    document.addEventListener("pointerover", (event) => {
      const shape = event.target.closest("[data-tip]");
      if (shape) tip.show(shape.dataset.tip, event.clientX, event.clientY);
    });
    document.addEventListener("pointerout", (event) => {
      if (event.target.closest("[data-tip]")) tip.hide();
    });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hide(); });
  }

  function size(value) {
    let unit = 0;
    while (value >= 999.5 && unit < SIZES.length - 1) { value /= 1000; unit += 1; }
    return unit ? `${value.toPrecision(3)} ${SIZES[unit]}` : `${Math.round(value)} B`;
  }

  // Adds a rectangle to a chart, which marks a cell or a selection.
  function shape(svg, css) {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    rect.setAttribute("class", css);
    svg.append(rect);
    return {
      place(x, y, width, height) {
        rect.style.display = "";
        const place = Object.entries({ x, y, width, height });
        place.forEach(([key, value]) => rect.setAttribute(key, value));
      },
      hide() { rect.style.display = "none"; },
    };
  }

  // Shows the value of the cell under the pointer, or of the cell selected by the arrow keys.
  // `view()` returns the visible range of columns; `keys` handles further keys.
  function cells(svg, rows, columns, view, text, tip, keys = () => false) {
    const cursor = shape(svg, "cursor");
    let at = { row: 0, column: 0 };
    const show = (x, y) => {
      const height = Number(svg.dataset.rows) / rows;
      cursor.place(at.column, at.row * height, 1, height);
      tip.show(text(at.row, at.column), x, y);
    };
    const centre = () => {
      const box = svg.getBoundingClientRect(), shown = view();
      const part = (at.column + 0.5 - shown.from) / (shown.to - shown.from);
      show(box.left + part * box.width, box.top + (at.row + 0.5) / rows * box.height);
    };
    svg.addEventListener("pointermove", (event) => {
      at = cell(svg, event, rows, view());
      if (at.column < columns) show(event.clientX, event.clientY);
    });
    const leave = () => { cursor.hide(); tip.hide(); };
    svg.addEventListener("pointerleave", leave);
    svg.addEventListener("blur", leave);
    svg.addEventListener("keydown", (event) => {
      const arrows = {
        ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
      };
      const [down, right] = arrows[event.key] || [0, 0];
      if (!down && !right && !keys(event.key, at.column)) return;
      const shown = view(), within = (value, low, high) => Math.min(Math.max(value, low), high);
      const [first, last] = [Math.floor(shown.from), Math.ceil(shown.to) - 1];
      const row = within(at.row + down, 0, rows - 1);
      at = { row, column: within(at.column + right, first, last) };
      event.preventDefault();
      centre();
    });
    leave();
  }

  function cell(svg, event, rows, shown) {
    const box = svg.getBoundingClientRect();
    const part = (value, low, length) => Math.min(Math.max((value - low) / length, 0), 0.999999);
    const x = part(event.clientX, box.left, box.width);
    return {
      row: Math.floor(part(event.clientY, box.top, box.height) * rows),
      column: Math.floor(shown.from + x * (shown.to - shown.from)),
    };
  }

  function grid(chart, values, tip) {
    const svg = chart.querySelector("svg"), whole = { from: 0, to: values.columns.length };
    const text = (row, column) =>
      `${values.rows[row]}, ${values.columns[column]}: ${size(values.bytes[row][column])}`;
    cells(svg, values.rows.length, values.columns.length, () => whole, text, tip);
  }

  // ---- time ----
  function timeCharts(time, tip) {
    const charts = all(".chart.time"), columns = time.written.length, rows = time.labels.length;
    const least = Math.min(8, columns);
    const decode = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const shares = decode(time.shares), waits = decode(time.waits);
    let shown = { from: 0, to: columns };
    const moment = (column) => time.start + column * time.bin;
    const rounded = (column) => Number(moment(column).toPrecision(4));
    const span = (column) => `${rounded(column)}–${rounded(column + 1)} s`;
    const bytes = (column) => [["written", time.written], ["read", time.read]]
      .filter(([, bins]) => bins[column])
      .map(([word, bins]) => `${word} ${size(bins[column] / time.bin)}/s`)
      .join("\n") || "no bytes moved";
    const share = (index, row, column) => shares[(index * rows + row) * columns + column] / 255;
    const activity = (row, column) => time.kinds
      .map((kind, index) => [kind, share(index, row, column)])
      .filter(([, part]) => part > 0.004)
      .map(([kind, part]) => `${Math.round(part * 100) || "<1"} % ${kind}`)
      .join("\n") || "no I/O";

    const waiting = (row, column) => {
      const part = waits[row * columns + column] / 255;
      return part > 0.004 ? `${Math.round(part * 100) || "<1"} % waiting for batches` : "no waits";
    };
    // Number of rows, and text of a cell, by chart; charts without rows show the bytes.
    const maps = {
      timeline: [rows, (row, column) =>
        `${time.labels[row]}, ${span(column)}\n${activity(row, column)}`],
      "loader-waits": [time.loaders.length, (row, column) =>
        `${time.loaders[row]}, ${span(column)}\n${waiting(row, column)}`],
    };

    function zoom(from, to) {
      const width = Math.min(Math.max(to - from, least), columns);
      const start = Math.min(Math.max(from, 0), columns - width);
      shown = { from: start, to: start + width };
      charts.forEach((chart) => {
        const svg = chart.querySelector("svg");
        svg.setAttribute("viewBox", `${shown.from} 0 ${width} ${svg.dataset.rows}`);
        ticks(chart.querySelector(".x"));
      });
      tip.hide();
    }
    function ticks(axis) {
      const low = moment(shown.from), length = (shown.to - shown.from) * time.bin;
      const high = low + length * 1.0001, most = Math.max(2, axis.clientWidth / 80);
      const power = 10 ** Math.floor(Math.log10(length / most));
      const steps = [1, 2, 5, 10].map((factor) => factor * power);
      const step = steps.find((size) => size >= length / most * 0.999);
      axis.textContent = "";
      for (let value = Math.ceil(low / step - 1e-9); value * step <= high; value += 1) {
        const tick = document.createElement("span");
        tick.className = "tick";
        tick.textContent = Number((value * step).toPrecision(6));
        tick.style.left = `${100 * (value * step - low) / length}%`;
        axis.append(tick);
      }
    }
    const about = (column, factor) => {
      const half = (shown.to - shown.from) * factor / 2;
      zoom(column - half, column + half);
    };
    const middle = () => (shown.from + shown.to) / 2, quarter = () => (shown.to - shown.from) / 4;
    const actions = {
      in: () => about(middle(), 0.5),
      out: () => about(middle(), 2),
      all: () => zoom(0, columns),
      left: () => zoom(shown.from - quarter(), shown.to - quarter()),
      right: () => zoom(shown.from + quarter(), shown.to + quarter()),
    };
    all("[data-zoom]").forEach((button) => {
      button.addEventListener("click", actions[button.dataset.zoom]);
    });
    all("[data-from]").forEach((button) => button.addEventListener("click", () => {
      const bin = (seconds) => (seconds - time.start) / time.bin;
      const from = bin(button.dataset.from), to = bin(button.dataset.to);
      zoom(from - (to - from) / 4, to + (to - from) / 4);
      charts[0].scrollIntoView({ block: "center" });
    }));
    const keys = (key, column) => {
      const enlarge = () => about(column + 0.5, 0.5), reduce = () => about(column + 0.5, 2);
      const action = { "+": enlarge, "=": enlarge, "-": reduce, "0": actions.all }[key];
      if (action) action();
      return Boolean(action);
    };
    charts.forEach((chart) => {
      const svg = chart.querySelector("svg");
      const flat = [1, (row, column) => `${span(column)}\n${bytes(column)}`];
      const [bands, text] = maps[chart.id] || flat;
      drag(svg);
      cells(svg, bands, columns, () => shown, text, tip, keys);
    });
    addEventListener("resize", () => zoom(shown.from, shown.to));
    zoom(0, columns);

    function drag(svg) {
      const selection = shape(svg, "selection");
      let start = null;
      const end = () => { start = null; selection.hide(); };
      const column = (event) => cell(svg, event, 1, shown).column;
      svg.addEventListener("pointerdown", (event) => {
        if (event.pointerType !== "mouse" || event.button !== 0) return;
        start = column(event);
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointermove", (event) => {
        if (start === null) return;
        const now = column(event);
        selection.place(Math.min(start, now), 0, Math.abs(now - start) + 1, svg.dataset.rows);
      });
      svg.addEventListener("pointerup", (event) => {
        const first = start, last = column(event);
        end();
        if (first === null || Math.abs(last - first) < 2) return;
        zoom(Math.min(first, last), Math.max(first, last) + 1);
      });
      svg.addEventListener("pointercancel", end);
      svg.addEventListener("dblclick", actions.all);
      end();
    }
  }

  // ---- tables ----
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
        const orders = numbers ? ["descending", "ascending"] : ["ascending", "descending"];
        const order = orders[head.getAttribute("aria-sort") === orders[0] ? 1 : 0];
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const number = (row) => Number(row.cells[column].dataset.v);
        const text = (row) => row.cells[column].textContent;
        const compare = numbers
          ? (a, b) => sign * (number(a) - number(b))
          : (a, b) => sign * text(a).localeCompare(text(b), undefined, { numeric: true });
        body.append(...[...body.rows].sort(compare));
      });
    });
  }

  function foldable(table) {
    if (table.tBodies[0].rows.length <= SHORT) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "more";
    const fold = (short) => {
      table.classList.toggle("short", short);
      button.textContent = short ? `Show all ${table.tBodies[0].rows.length}` : "Show fewer";
    };
    button.addEventListener("click", () => fold(!table.classList.contains("short")));
    table.closest(".scroll").after(button);
    fold(true);
  }

  function filter() {
    const input = document.getElementById("file-filter");
    const table = document.getElementById("file-table");
    if (!input) return;
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase(), rows = [...table.tBodies[0].rows];
      rows.forEach((row) => {
        const place = "wholeRow" in input.dataset ? row : row.cells[0];
        row.hidden = !place.textContent.toLowerCase().includes(wanted);
      });
      table.classList.toggle("filtered", Boolean(wanted));
      const visible = rows.filter((row) => !row.hidden).length;
      const count = document.getElementById("file-count");
      count.textContent = wanted ? `${visible} of ${rows.length}` : "";
    });
  }

  // ---- commands and printing ----
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
    const open = (value) => opened.forEach((details) => { details.open = value; });
    addEventListener("beforeprint", () => { opened = all("details:not([open])"); open(true); });
    addEventListener("afterprint", () => open(false));
  }
});
