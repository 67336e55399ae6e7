// All that is known of one sample. Escape closes; the browser gives the focus back.
function openSample(sample) {
  byId("sample-name").textContent =
    `${BLOCK.splits[sample.split].title} ${sample.noun} ${sample.row}`.trim();
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
    .filter(([key]) => !(sample.wrong && /^(lower|upper|r)$/.test(key)))
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
  const bar = byId(wrong ? "no-span" : "span").content.firstElementChild.cloneNode(true);
  const [safe, flip] = [lower ?? 0, upper ?? Infinity];
  const end = 1.15 * Math.max(...[safe, flip, d].filter(Number.isFinite)) || 1;
  const percent = (value) => (100 * Math.min(value, end)) / end;
  const ends = { proved: [0, safe], open: [safe, flip], flipped: [flip, end], estimate: [d, d] };
  for (const part of bar.querySelectorAll("i")) {
    const [from, to] = ends[part.dataset.part];
    part.style.left = `${percent(from)}%`;
    part.style.width = `${percent(to) - percent(from)}%`;
  }
  return bar;
}
