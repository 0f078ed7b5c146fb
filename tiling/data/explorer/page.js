"use strict";
// Text of the input goes into the page through textContent alone; what goes to plotly (which reads markup) is numbers.

const $ = id => document.getElementById(id);
const facts = JSON.parse($("facts").textContent);
const blocks = document.getElementsByClassName("block");
const formatter = new Intl.NumberFormat("en-US");
const show = number => formatter.format(number);
const UNITS = ["bytes", "kB", "MB", "GB", "TB", "PB"];
const short = bytes => {
  const step = Math.floor(Math.log10(Math.max(bytes, 1)) / 3);
  return `${step ? (bytes / 1000 ** step).toFixed(1) : bytes} ${UNITS[step]}`;
};
const many = (number, word) => `${show(number)} ${word}${Number(number) === 1 ? "" : "s"}`;
const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array, u8: BigUint64Array };
const PARTNERS = 8; // of a tile, shown before the rest is asked for
const SHARDS = 4; // and of a tensor
const BARS = 40; // sizes with a bar each; more are put together by powers of two

const state = { phase: 0, copy: -1, tile: -1 }; // copy -1: the whole phase; tile -1: none
let loaded = []; // the columns of the chosen copies
let tiles = 0; // on the device
let plotly; // a promise

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// Sums stay exact: numbers to 2^53, BigInts beyond.
const plus = (a, b) => (typeof a === typeof b ? a + b : BigInt(a) + BigInt(b));

// --- columns -------------------------------------------------------------------------------------------------------

async function inflate(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

const kept = new Map();

function load(copy) {
  if (!kept.has(copy.block)) kept.set(copy.block, unpack(copy));
  return kept.get(copy.block);
}

async function unpack(copy) {
  const buffer = await inflate(blocks[copy.block].textContent);
  const columns = {};
  let at = 0;
  for (const [name, type, length] of copy.columns) {
    const end = at + length * ARRAYS[type].BYTES_PER_ELEMENT;
    columns[name] = new ARRAYS[type](buffer.slice(at, end)); // a slice, as views must be aligned
    at = end;
  }
  // Pairs stand by source; `arriving` lists them by destination (a counting sort).
  const start = new Uint32Array(columns.sent_words.length + 1);
  for (const tile of columns.pair_destination) start[tile + 1]++;
  for (let i = 1; i < start.length; i++) start[i] += start[i - 1];
  columns.arriving_start = start.slice();
  columns.arriving = new Uint32Array(columns.pair_destination.length);
  columns.pair_destination.forEach((tile, pair) => (columns.arriving[start[tile]++] = pair));
  return columns;
}

/** The first row of an ascending column that is not less. */
function first(column, value) {
  let low = 0;
  for (let high = column.length; low < high; ) {
    const middle = (low + high) >> 1;
    if (column[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A per-tile column, summed over the chosen copies. */
function perTile(name) {
  const sum = new Array(tiles).fill(0);
  for (const columns of loaded) columns[name].forEach((value, tile) => (sum[tile] = plus(sum[tile], value)));
  return sum;
}

/** Whom a tile sends to (or receives from): tile, words, messages; the most words first. */
function partners(tile, sends) {
  const found = new Map();
  const add = (columns, pair) => {
    const other = (sends ? columns.pair_destination : columns.pair_source)[pair];
    const row = found.get(other) ?? { tile: other, words: 0, messages: 0 };
    row.words += columns.pair_words[pair];
    row.messages += columns.pair_messages[pair];
    found.set(other, row);
  };
  for (const columns of loaded) {
    if (sends) {
      const end = first(columns.pair_source, tile + 1);
      for (let pair = first(columns.pair_source, tile); pair < end; pair++) add(columns, pair);
    } else {
      const end = columns.arriving_start[tile + 1] ?? 0;
      for (let i = columns.arriving_start[tile] ?? 0; i < end; i++) add(columns, columns.arriving[i]);
    }
  }
  return [...found.values()].sort((a, b) => b.words - a.words || a.tile - b.tile);
}

/** Runs by size, of one tile or of all: a map from bytes to their number. */
function sizes(kind, tile) {
  const found = new Map();
  for (const columns of loaded) {
    const owner = columns[`${kind}_tile`];
    const end = tile < 0 ? owner.length : first(owner, tile + 1);
    for (let i = tile < 0 ? 0 : first(owner, tile); i < end; i++) {
      const size = columns[`${kind}_size`][i];
      found.set(size, (found.get(size) ?? 0) + columns[`${kind}_count`][i]);
    }
  }
  return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
}

// --- what is chosen ------------------------------------------------------------------------------------------------

const phase = () => facts.phases[state.phase];
const chosen = () => (state.copy < 0 ? phase() : phase().copies[state.copy]);
const copies = () => (state.copy < 0 ? phase().copies : [chosen()]);

function readHash() {
  const [, p = "0", c, t] = /^#(\d+)(?:\.(\d+))?(?:@(\d+))?$/.exec(location.hash) ?? [];
  state.phase = Math.min(Number(p), facts.phases.length - 1);
  state.copy = c === undefined ? -1 : Math.min(Number(c), phase().copies.length - 1);
  state.tile = t === undefined ? -1 : Number(t);
}

function writeHash() {
  const copy = state.copy < 0 ? "" : `.${state.copy}`;
  history.replaceState(null, "", `#${state.phase}${copy}${state.tile < 0 ? "" : `@${state.tile}`}`);
}

async function choose(phaseNumber, copyNumber) {
  Object.assign(state, { phase: phaseNumber, copy: copyNumber });
  const wanted = chosen();
  document.body.ariaBusy = "true";
  const columns = await Promise.all(copies().map(load));
  if (wanted !== chosen()) return; // something else was chosen in the meantime
  loaded = columns;
  tiles = Math.max(...loaded.map(some => some.sent_words.length));
  if (state.tile >= tiles) state.tile = -1;
  $("search").max = tiles - 1;
  for (const button of $("phases").querySelectorAll("button")) {
    const current = Number(button.dataset.phase) === state.phase && Number(button.dataset.copy) === state.copy;
    button.toggleAttribute("aria-current", current);
    if (current) button.scrollIntoView({ block: "nearest" });
  }
  fillHeader();
  fillMeasures();
  setTile(state.tile);
  await Promise.all([drawGrids(), drawSizes()]);
  document.body.ariaBusy = "false";
}

function setTile(tile) {
  state.tile = tile;
  writeHash();
  fillTile();
  fillScopes();
}

async function chooseTile(tile) {
  const before = $("scope").value;
  setTile(tile);
  const sized = before === "tile" ? [drawSizes()] : [];
  await Promise.all([drawMarks(), ...sized]);
}

// --- the list and the header ---------------------------------------------------------------------------------------

function fillList() {
  $("title").textContent = facts.title;
  $("notes").hidden = !facts.notes.length;
  $("notes").querySelector("ul").append(...facts.notes.map(note => element("li", {}, note)));
  let graph = "";
  facts.phases.forEach((some, p) => {
    if (some.graph !== graph) $("phases").append(element("h3", {}, some.graph));
    graph = some.graph;
    $("phases").append(entry(some, p, -1));
    some.copies.forEach((copy, c) => $("phases").append(entry(copy, p, c)));
  });
}

function entry(item, p, c) {
  const button = element("button", { type: "button", className: c < 0 ? "phase" : "copy" }, element("b", {}, item.name));
  if (c < 0) {
    const busy = item.received_words >= item.sent_words;
    button.append(
      status(item),
      element("span", {}, `${many(item.transfers, "transfer")} · ${short(item.bytes)}`),
      element("span", {}, item.bound
        ? `bound ${show(item.bound)}: tile ${busy ? item.busiest_receiver : item.busiest_sender} ${busy ? "receives" : "sends"}`
        : "nothing is sent"),
    );
  } else {
    button.append(element("span", {}, `${many(item.transfers, "transfer")} · bound ${show(item.bound)}`));
  }
  Object.assign(button.dataset, { phase: p, copy: c });
  button.onclick = () => choose(p, c);
  return button;
}

/** What a log says of a phase, if there is a log. */
function status(item) {
  const made = element("small", {});
  if (item.status) made.append(" ", element("small", { className: item.status.replace(" ", "-"), title: item.logged }, item.status));
  return made;
}

function tileButton(tile, text = show(tile)) {
  const made = element("button", { type: "button", className: "tile" }, text);
  made.onclick = () => chooseTile(tile);
  return made;
}

function fillHeader() {
  const item = chosen();
  $("name").textContent = state.copy < 0 ? item.name : `${phase().name}: ${item.name}`;
  const busiest = (tile, words) => (words ? [tileButton(tile, `tile ${tile}`), ` ${show(words)} words`] : ["none"]);
  const figures = [
    ["transfers", [show(item.transfers)]],
    ["local runs", [show(item.local_runs)]],
    ["moved", [`${show(item.bytes)} bytes`]],
    ["bound", [`${show(item.bound)} words`]],
    ["busiest sender", busiest(item.busiest_sender, item.sent_words)],
    ["busiest receiver", busiest(item.busiest_receiver, item.received_words)],
    ["staging", [item.staging]],
  ];
  if (item.status) figures.push(["log", [status(item), ` ${item.logged}`]]);
  $("figures").replaceChildren(
    ...figures.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, ...value))),
  );
  const rows = copies().map(copy => {
    const cells = [`${copy.source}  →  ${copy.destination}`, copy.mapping].map(text => element("td", {}, text));
    return element("tr", {}, element("th", { scope: "row" }, copy.name), ...cells);
  });
  $("types").replaceChildren(...rows);
}

// --- the grids -----------------------------------------------------------------------------------------------------

const SIDES = {
  source: { words: "sent_words", messages: "sent_messages", does: "sends", title: "sent" },
  destination: { words: "received_words", messages: "received_messages", does: "receives", title: "received" },
};

function fillMeasures() {
  const options = [["words", "words"], ["messages", "messages"], ["bytes", "bytes held"]];
  // Where a tile's part begins shows the tiling itself.
  for (let axis = 0; loaded.length === 1 && axis < copies()[0].rank; axis++) {
    options.push([`axis ${axis}`, `first element on axis ${axis}`]);
  }
  const before = $("measure").value;
  $("measure").replaceChildren(...options.map(([value, text]) => element("option", { value }, text)));
  $("measure").value = options.some(([value]) => value === before) ? before : "words";
}

/** One side's numbers by the chosen measure, null where a tile has no part in it; their name and unit. */
function measured(side) {
  const measure = $("measure").value;
  const held = perTile(`${side}_bytes`);
  if (measure.startsWith("axis")) {
    const axis = Number(measure.slice(5));
    const rank = copies()[0].rank;
    const values = new Array(tiles).fill(null);
    const column = loaded[0][`${side}_shard_start`];
    loaded[0][`${side}_shard_tile`].forEach((tile, shard) => (values[tile] ??= column[shard * rank + axis]));
    return { values, name: `${side}: first element on axis ${axis}`, unit: "element" };
  }
  const values = measure === "bytes" ? held : perTile(SIDES[side][measure]);
  return {
    values: values.map((value, tile) => (value || held[tile] ? value : null)),
    name: measure === "bytes" ? `${side}: bytes held per tile` : `${side}: ${measure} ${SIDES[side].title} per tile`,
    unit: measure,
  };
}

/** As wide as a screen, and whole rows where that can be. */
function usualColumns() {
  const ideal = Math.sqrt(tiles * 1.45);
  let best = Math.max(1, Math.round(ideal));
  let distance = ideal / 3;
  for (let width = 1; width <= tiles; width++) {
    if (tiles % width === 0 && Math.abs(width - ideal) < distance) {
      best = width;
      distance = Math.abs(width - ideal);
    }
  }
  return best;
}

function gridColumns() {
  const asked = Number($("columns").value);
  return asked >= 1 ? Math.min(Math.floor(asked), tiles) : usualColumns();
}

function ticks(count, most) {
  const step = [1, 2, 5].flatMap(n => [n, n * 10, n * 100, n * 1000, n * 10000]).sort((a, b) => a - b)
    .find(n => count / n <= most);
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => i * step);
}

const tickFormat = most => (most < 1e5 ? ",d" : "~s"); // no wider than the margins
const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function base() {
  const axis = { zeroline: false, showgrid: false, linecolor: colour("line"), tickcolor: colour("line") };
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false, uirevision: "kept", dragmode: false,
    font: { family: getComputedStyle(document.body).fontFamily, size: 11, color: colour("dim") },
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink"), size: 12 } },
    xaxis: { ...axis, fixedrange: true }, yaxis: { ...axis, fixedrange: true },
  };
}

async function drawGrids() {
  const both = { source: measured("source"), destination: measured("destination") };
  const range = values => {
    const some = values.filter(value => value !== null).map(Number);
    const least = $("stretched").checked ? some.reduce((a, b) => Math.min(a, b), Infinity) : 0;
    return [least, some.reduce((a, b) => Math.max(a, b), 0)];
  };
  const all = $("shared").checked ? range([...both.source.values, ...both.destination.values]) : null;
  $("columns").placeholder = usualColumns();
  const Plotly = await plotly;
  await Promise.all(Object.keys(both).map(side => drawGrid(Plotly, side, both[side], all ?? range(both[side].values))));
}

function drawGrid(Plotly, side, { values, name, unit }, [least, most]) {
  const { width, rows, cell } = shape(side);
  const [dx, dy] = cell.map(pixels => 0.5 + 4 / pixels); // room for a frame at the edge
  $(`${side}-caption`).textContent = name;
  const facts = ["words", "messages"].map(what => perTile(SIDES[side][what])).concat([perTile(`${side}_bytes`).map(Number)]);
  const hover = [
    "<b>%{customdata[0]}</b>",
    `${SIDES[side].does} %{customdata[1]:,} words in %{customdata[2]:,} messages`,
    `holds %{customdata[3]:,} bytes of the ${side}`,
    ...(unit === "element" ? ["first element %{z:,}"] : []),
  ];
  const table = of => Array.from({ length: rows }, (_, y) => Array.from({ length: width }, (_, x) => of(y * width + x)));
  const gap = Math.min(...cell) > 4 ? 1 : 0;
  const trace = {
    type: "heatmap", z: table(tile => (tile < tiles && values[tile] !== null ? Number(values[tile]) : null)),
    zmin: Math.min(least, most), zmax: most > least ? most : least + 1, colorscale: "Cividis", reversescale: !dark.matches, xgap: gap, ygap: gap, // more ink is more load
    customdata: table(tile => [tile < tiles ? `tile ${show(tile)}` : "no tile", ...facts.map(column => column[tile] ?? 0)]),
    hovertemplate: `${hover.join("<br>")}<extra></extra>`,
    ...(isRoomy(cell) ? { text: table(tile => (tile < tiles ? show(tile) : "")), texttemplate: "%{text}" } : {}),
    colorbar: { title: { text: unit, side: "right" }, thickness: 10, outlinewidth: 0, tickformat: tickFormat(most), nticks: 6 },
  };
  const layout = base();
  const columns = ticks(width, Math.min(12, $(side).clientWidth / 42));
  const starts = ticks(rows, 10);
  layout.margin = { l: 52, r: 88, t: 6, b: 20, autoexpand: false }; // what fits is measured each time otherwise
  layout.plot_bgcolor = colour("empty");
  layout.shapes = marks(side);
  Object.assign(layout.xaxis, { range: [-dx, width - 1 + dx], tickvals: columns, ticktext: columns.map(x => `+${x}`) });
  Object.assign(layout.yaxis, { range: [rows - 1 + dy, -dy], tickvals: starts, ticktext: starts.map(y => show(y * width)) });
  return Plotly.react($(side), [trace], layout, { displayModeBar: false, responsive: true });
}

/** A grid's tiles a row, its rows, and about how many pixels wide and high a cell is. */
function shape(side) {
  const width = gridColumns();
  const rows = Math.ceil(tiles / width);
  return { width, rows, cell: [($(side).clientWidth - 140) / width, ($(side).clientHeight - 26) / rows] };
}

const isRoomy = cell => Math.min(...cell) > 26; // for a number in it

/** The chosen tile's frame, and a diamond on each of its partners: two shapes, which are redrawn alone. */
function marks(side) {
  if (state.tile < 0) return [];
  const { width, cell } = shape(side);
  const place = tile => [tile % width, Math.floor(tile / width)];
  const [rx, ry] = cell.map(pixels => Math.min(0.34, 7 / pixels));
  const shift = isRoomy(cell) ? 0.3 : 0; // beside the number
  const diamond = ({ tile }) => {
    const [x, y] = place(tile).map(at => at - shift);
    return `M${x - rx},${y}L${x},${y - ry}L${x + rx},${y}L${x},${y + ry}Z`;
  };
  const found = partners(state.tile, side === "destination");
  const [x, y] = place(state.tile);
  const [dx, dy] = cell.map(pixels => 0.5 + 1.5 / pixels); // around the cell, which stays to be seen
  const frame = { type: "rect", x0: x - dx, x1: x + dx, y0: y - dy, y1: y + dy };
  return [
    ...(found.length ? [{ type: "path", path: found.map(diamond).join(""), fillcolor: "#fff", line: { color: "#000", width: 1 } }] : []),
    { ...frame, line: { color: "#000", width: 5 } },
    { ...frame, line: { color: colour("mark"), width: 3 } },
  ];
}

async function drawMarks() {
  const Plotly = await plotly;
  for (const side of Object.keys(SIDES)) Plotly.relayout($(side), { shapes: marks(side) });
}

// --- run lengths ---------------------------------------------------------------------------------------------------

function fillScopes() {
  const option = $("scope").options[1];
  option.textContent = state.tile < 0 ? "one tile" : `tile ${state.tile}`;
  option.disabled = state.tile < 0;
  if (state.tile < 0) $("scope").value = "all";
}

async function drawSizes() {
  const found = sizes($("kind").value, $("scope").value === "tile" ? state.tile : -1);
  const bars = found.length <= BARS ? found.map(([size, count]) => ({ low: size, high: size, count, bytes: Number(size) * count }))
    : octaves(found);
  const bytes = $("weight").value === "bytes";
  const heights = bars.map(bar => (bytes ? bar.bytes : bar.count));
  const run = $("kind").value === "local" ? "run" : "message";
  const Plotly = await plotly;
  const layout = base();
  layout.margin = { l: 68, r: 6, t: 8, b: bars.length > 8 ? 76 : 44, autoexpand: false }; // labels of many bars stand upright
  layout.bargap = 0.15;
  Object.assign(layout.xaxis, { type: "category", title: { text: `bytes per ${run}`, standoff: 6 } });
  Object.assign(layout.yaxis, {
    title: { text: bytes ? "bytes" : `${run}s`, standoff: 4 }, showgrid: true, gridcolor: colour("line"), rangemode: "tozero",
    tickformat: tickFormat(Math.max(...heights)), nticks: 5,
  });
  const name = ({ low, high }) => (low === high ? show(low) : `${show(low)}–${show(high)}`);
  if (!bars.length) layout.annotations = [{ text: `no ${run}s`, showarrow: false, font: { size: 13 } }];
  return Plotly.react($("sizes"), [{
    type: "bar", x: bars.map(({ low, high }) => (low === high ? show(low) : `${show(low)}+`)), y: heights, marker: { color: colour("accent") },
    hovertext: bars.map(bar => `<b>${name(bar)} bytes</b><br>${many(bar.count, run)}<br>${many(bar.bytes, "byte")} in all`),
    hovertemplate: "%{hovertext}<extra></extra>",
  }], layout, { displayModeBar: false, responsive: true });
}

/** Sizes put together by powers of two, the empty ones between them too. */
function octaves(found) {
  const power = size => Math.floor(Math.log2(Number(size)));
  const lowest = power(found[0][0]);
  const bars = Array.from({ length: power(found.at(-1)[0]) - lowest + 1 }, (_, i) => (
    { low: 2 ** (lowest + i), high: 2 ** (lowest + i + 1) - 1, count: 0, bytes: 0 }
  ));
  for (const [size, count] of found) {
    const bar = bars[power(size) - lowest];
    bar.count += count;
    bar.bytes += Number(size) * count;
  }
  return bars;
}

// --- one tile ------------------------------------------------------------------------------------------------------

function fillTile() {
  const tile = state.tile;
  $("search").value = tile < 0 ? "" : tile;
  if (tile < 0) {
    $("tile").replaceChildren(
      element("h3", {}, "No tile chosen"),
      element("p", { className: "dim" }, "Click a tile in a grid, type its number, or start with the ",
        "busiest sender or receiver above: what it owns, sends and receives is shown here."),
    );
    return;
  }
  const sum = name => loaded.reduce((all, columns) => plus(all, columns[name][tile] ?? 0), 0);
  const runs = sum("local_runs");
  $("said").textContent = `tile ${tile} sends ${sum("sent_words")} words, receives ${sum("received_words")}`;
  $("tile").replaceChildren(
    element("h3", {}, `Tile ${show(tile)}`),
    owned(tile),
    element("p", { id: "local" }, runs ? `Keeps ${many(sum("local_bytes"), "byte")} on the tile, in ${many(runs, "local run")}.`
      : "Keeps nothing on the tile: no local runs."),
    element("div", { className: "flows" },
      flow("sends", "to", tile, true, sum("sent_words"), sum("sent_messages")),
      flow("receives", "from", tile, false, sum("received_words"), sum("received_messages"))),
  );
}

/** The tile's shards of every tensor: boxes, bytes, offsets. */
function owned(tile) {
  const body = element("tbody", {});
  copies().forEach((copy, number) => {
    for (const side of Object.keys(SIDES)) {
      const of = name => loaded[number][`${side}_shard_${name}`];
      const shards = [];
      of("tile").forEach((owner, shard) => owner === tile && shards.push(shard));
      const rows = shards.map(shard => [box(of, copy.rank, shard), show(of("bytes")[shard]), show(of("offset")[shard])]);
      const made = (rows.length ? rows : [["nothing", "0", ""]]).map(([text, bytes, offset], i) => element("tr", {},
        element("td", {}, i === 0 && side === "source" ? copy.name : ""), element("td", {}, i === 0 ? side : ""),
        element("td", {}, element("code", {}, text)), element("td", { className: "number" }, bytes),
        element("td", { className: "number" }, offset)));
      body.append(...made.slice(0, SHARDS));
      if (made.length > SHARDS) body.append(more(made.slice(SHARDS), "shards", 5));
    }
  });
  const heads = ["copy", "tensor", "owns (elements, half-open; +zero padding)", "bytes", "at byte"];
  const head = element("tr", {}, ...heads.map((text, i) => element("th", { scope: "col", className: i > 2 ? "number" : "" }, text)));
  return element("table", { id: "owned" }, element("thead", {}, head), body);
}

function box(of, rank, shard) {
  const sides = Array.from({ length: rank }, (_, axis) => {
    const [start, end, padded] = ["start", "logical_end", "physical_end"].map(name => of(name)[shard * rank + axis]);
    return `${start}:${end}${padded > end ? `+${BigInt(padded) - BigInt(end)}` : ""}`;
  });
  return `[${sides.join(", ")}]`;
}

/** A row with a button that puts further rows in its place. */
function more(rows, what, span) {
  const button = element("button", { type: "button", className: "more" }, `${show(rows.length)} more ${what}`);
  const made = element("tr", {}, element("td", { colSpan: span }, button));
  button.onclick = () => made.replaceWith(...rows);
  return made;
}

function flow(verb, preposition, tile, sends, words, messages) {
  const found = partners(tile, sends);
  const delivered = found.reduce((sum, some) => sum + some.words, 0);
  const title = found.length
    ? `${verb[0].toUpperCase()}${verb.slice(1)} ${many(words, "word")} in ${many(messages, "message")} ${preposition} ${many(found.length, "tile")}`
    : `${verb[0].toUpperCase()}${verb.slice(1)} nothing`;
  const made = element("section", { id: verb }, element("h3", {}, title));
  if (delivered > words) {
    made.append(element("p", { className: "dim" }, `multicast: ${many(delivered, "word")} arrive`));
  }
  if (!found.length) return made;
  const rows = found.map(some => {
    const bar = element("i", {});
    bar.style.width = `${(100 * some.words) / found[0].words}%`;
    return element("tr", {}, element("td", { className: "number" }, tileButton(some.tile)),
      element("td", { className: "number" }, show(some.words)), element("td", { className: "number" }, show(some.messages)),
      element("td", { className: "share" }, bar));
  });
  const head = element("tr", {}, ...[preposition === "to" ? "to tile" : "from tile", "words", "messages"]
    .map(text => element("th", { scope: "col", className: "number" }, text)), element("th", {}));
  const body = element("tbody", {}, ...rows.slice(0, PARTNERS));
  if (rows.length > PARTNERS) body.append(more(rows.slice(PARTNERS), "tiles", 4));
  made.append(element("table", {}, element("thead", {}, head), body));
  return made;
}

// --- hands ---------------------------------------------------------------------------------------------------------

function listen() {
  $("controls").onsubmit = event => event.preventDefault();
  $("search").onchange = () => {
    const { value } = $("search");
    if (value === "") chooseTile(-1);
    else if ($("search").checkValidity()) chooseTile(Number(value));
  };
  for (const id of ["measure", "shared", "stretched"]) $(id).onchange = drawGrids;
  $("columns").oninput = drawGrids;
  for (const id of ["kind", "scope", "weight"]) $(id).onchange = drawSizes;
  for (const side of Object.keys(SIDES)) {
    $(side).on("plotly_click", ({ points: [point] }) => {
      const tile = point.y * gridColumns() + point.x;
      if (tile < tiles) chooseTile(tile);
    });
    $(side).addEventListener("keydown", moveInGrid);
  }
  $("phases").addEventListener("keydown", moveInList);
  document.addEventListener("keydown", shortcut);
  addEventListener("hashchange", () => {
    readHash();
    choose(state.phase, state.copy);
  });
  dark.addEventListener("change", () => Promise.all([drawGrids(), drawSizes()]));
}

function moveInGrid(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -gridColumns(), ArrowDown: gridColumns() }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const tile = state.tile < 0 ? 0 : state.tile + step;
  if (tile >= 0 && tile < tiles) chooseTile(tile);
}

function moveInList(event) {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const buttons = [...$("phases").querySelectorAll("button")];
  const next = buttons[buttons.indexOf(document.activeElement) + step];
  next?.focus();
  next?.click();
}

function shortcut(event) {
  const typing = event.target.matches("input, select");
  if (event.key === "Escape") {
    document.activeElement.blur();
    chooseTile(-1);
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey) {
    return;
  } else if (event.key === "/") {
    event.preventDefault();
    $("search").focus();
    $("search").select();
  } else if (event.key === "[" || event.key === "]") {
    const buttons = [...$("phases").querySelectorAll("button")];
    const at = buttons.findIndex(button => button.hasAttribute("aria-current"));
    buttons[at + (event.key === "[" ? -1 : 1)]?.click();
  } else if (event.key === "s" && chosen().sent_words) {
    chooseTile(chosen().busiest_sender);
  } else if (event.key === "r" && chosen().received_words) {
    chooseTile(chosen().busiest_receiver);
  }
}

/** The library is text until here, so that the lists stand before it is read. */
async function startPlotly() {
  const source = new TextDecoder().decode(await inflate($("plotly").textContent));
  document.head.append(element("script", { textContent: source }));
  return window.Plotly;
}

async function main() {
  plotly = startPlotly();
  fillList();
  readHash();
  $("legend").append("Tile = row + column; grey: holds nothing. ", element("i", {}, "□"),
    " the chosen tile, ◇ its partners: left, whom it receives from; right, whom it sends to");
  await choose(state.phase, state.copy);
  listen();
}

main().catch(error => {
  document.body.prepend(element("p", { id: "fault", role: "alert" }, `The page can't be shown: ${error}`));
  throw error;
});
