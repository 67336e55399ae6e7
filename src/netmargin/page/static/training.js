// Which samples carry the decision, and how training went.
function drawSupport() {
  const { k, share } = BLOCK.support;
  const curve = toRows(BLOCK.support, (i) => ({
    number: k[i],
    share: share[i] / 100,
    tip: `the heaviest ${commas(k[i])} carry ${writePercent(share[i] / 100)}`,
  }));
  const half = curve.find((row) => row.share >= 0.5).number;
  // The last row, all samples, tells where the axis ends; the curve ends where the weights do.
  draw("weights", "weights", { rows: curve.slice(0, -1) }, { half, extent: [0, k.at(-1)] });
  const heaviest = byId("heaviest");
  if (!heaviest || !SPLITS.includes("training")) return;
  for (const card of members(heaviest)) {
    const sample = sampleOf("training", Number(card.dataset.row));
    card.prepend(makePicture(sample), " ");
    card.setAttribute("aria-label", `${card.textContent} ${sayCard(sample)}`);
    card.onclick = () => openSample(sample);
  }
  rove(heaviest);
  restFocus(heaviest);
  byId("all-support").onclick = () => {
    choose({ split: "training", show: "weight", sort: "-w", class: "", rival: "", from: "", to: "" });
    showSection("images");
  };
}

function drawTraining() {
  const { epoch, log10_loss: loss, margin, right, separated } = BLOCK.training;
  const signals = { since: separated, extent: [Math.min(0, ...epoch), Math.max(...epoch)] };
  const line = (values, write) =>
    toRows(BLOCK.training, (i) => ({
      epoch: epoch[i],
      value: values[i],
      tip: `epoch ${epoch[i]}: ${write(values[i])}; ${writePercent(right[i] / 100)} right`,
    }));
  const writeLoss = (value) => `loss ${value > -3 ? writeNumber(10 ** value) : powerOfTen(value)}`;
  draw("loss", "loss", { rows: line(loss, writeLoss) }, signals);
  const writeMargin = (value) => `margin ${writeNumber(value)}`;
  // Before all samples are right the smallest margin is negative, and means nothing.
  const counts = margin.map((value, i) => (epoch[i] < separated ? null : value));
  if (byId("c-margin")) draw("margin", "margin", { rows: line(counts, writeMargin) }, signals);
}
