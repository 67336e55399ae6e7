// All that is known of one sample. Escape closes; the browser gives the focus back.
function openSample(sample) {
  const { title } = BLOCK.splits[sample.split];
  byId("sample-name").textContent = `${title} ${sample.noun} ${sample.row}`;
  byId("sample-body").replaceChildren(
    makePicture(sample),
    make("dl", {}, ...listNumbers(sample)),
    drawSpan(sample),
  );
  byId("sample").showModal();
}

/** Name, value and certainty of each number that there is, as in the table. */
const listNumbers = (sample) =>
  TABLE.slice(1)
    .filter(([key]) => sample[key] != null && key !== "text")
    .filter(([key]) => !sample.wrong || !["lower", "upper", "r"].includes(key))
    .map(([key, title, write, sure]) =>
      make(
        "div",
        {},
        make("dt", {}, title),
        make("dd", {}, write(sample[key])),
        make("dd", {}, sure && make("span", { class: `certainty ${sure.toLowerCase()}` }, sure)),
      ));

/** One bar: proved, open, flipped, and a dashed tick at the estimate. */
function drawSpan({ wrong, d, lower, upper }) {
  if (lower == null && upper == null) return "";
  if (wrong) return make("p", { class: "note" }, "Wrong as it is: no change is needed.");
  const [safe, flip] = [lower ?? 0, upper ?? Infinity];
  const end = 1.15 * Math.max(...[safe, flip, d].filter(Number.isFinite)) || 1;
  const percent = (value) => (100 * Math.min(value, end)) / end;
  const part = (kind, from, to) =>
    make("i", { class: kind, style: `left:${percent(from)}%;width:${percent(to) - percent(from)}%` });
  return make(
    "div",
    { class: "span" },
    part("fill-proved", 0, safe),
    part("fill-open", safe, flip),
    part("fill-flipped", flip, end),
    d == null ? null : part("mark", d, d),
    make("span", {}, "solid: proved; hatched: open; tint: flipped; dashed: the estimate"),
  );
}
