// All that is known of one sample. Escape closes; the browser gives the focus back.
function openSample(split, row) {
  const columns = columnsOf(split);
  const dialog = byId("sample");
  const title = `${samplesOf(split).replace(/s$/, "")} ${row}`;
  dialog.replaceChildren(
    make(
      "div",
      { class: "head" },
      make("h2", { id: "sample-name" }, title[0].toUpperCase() + title.slice(1)),
      make("button", { type: "button", onclick: () => dialog.close() }, "Close"),
    ),
    make(
      "div",
      { class: "body" },
      BLOCK.sprites ? makeImage(columns, row) : null,
      columns.text?.[row] ? make("p", { class: "text" }, columns.text[row]) : null,
      listNumbers(columns, row),
      drawSpan(columns, row),
    ),
  );
  dialog.showModal();
}

function listNumbers(columns, row) {
  const { y, p, r, q, d, lower, upper, w } = columns;
  const wrong = isWrong(columns, row);
  const lines = [
    ["label", className(y[row]), null],
    [wrong ? "answer (wrong)" : "answer (right)", className(p[row]), "Measured"],
    [wrong ? null : "nearest rival", className(r[row]), BLOCK.axis?.label ?? "Measured"],
    ["score margin", writeNumber(q[row]), "Measured"],
    [BLOCK.axis?.name ?? "distance", writeDistance(d[row]), BLOCK.axis?.label ?? "Measured"],
    [!wrong && lower?.[row] != null && "proved safe below", writeDistance(lower?.[row]), "Proved"],
    [!wrong && upper?.[row] != null && "flip found at", writeDistance(upper?.[row]), "Measured"],
    [w?.[row] > 0 && "share of the weight", writePercent(w?.[row], 1), "Measured"],
  ].filter(([name]) => name);
  return make(
    "dl",
    {},
    ...lines.map(([name, value, kind]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, value), make("dd", {}, kind ? certainty(kind) : "")),
    ),
  );
}

/** One bar: proved, open, flipped, and a dashed tick at the estimate. */
function drawSpan({ y, p, d, lower, upper }, row) {
  if (lower?.[row] == null && upper?.[row] == null) return null;
  if (y[row] !== p[row]) return make("p", { class: "note" }, "Wrong as it is: no change is needed.");
  const safe = lower?.[row] ?? 0;
  const flip = upper?.[row] ?? Infinity;
  const finite = [safe, flip, d[row] ?? 0].filter(Number.isFinite);
  const end = 1.15 * Math.max(...finite) || 1;
  const at = (value) => `${(100 * Math.min(value, end)) / end}%`;
  const part = (kind, from, to) =>
    make("div", { class: `fill-${kind}`, style: `left: ${at(from)}; width: calc(${at(to)} - ${at(from)})` });
  const said = [
    safe > 0 && `proved below ${writeDistance(safe)}`,
    flip < Infinity && `flipped from ${writeDistance(flip)}`,
    d[row] != null && `estimate ${writeDistance(d[row])} (dashed)`,
  ];
  return make(
    "div",
    { class: "span" },
    part("proved", 0, safe),
    part("open", safe, flip),
    flip < Infinity ? part("flipped", flip, end) : null,
    d[row] != null ? make("div", { class: "mark", style: `left: ${at(d[row])}` }) : null,
    make("span", { style: "left: 0" }, said.filter(Boolean).join("; ")),
  );
}
