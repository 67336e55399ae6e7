// Which samples carry the decision, how training went, how nets compare: charts without a choice.
function drawSupport() {
  if (!BLOCK.support) return;
  const { k, share } = BLOCK.support;
  const n = BLOCK.splits.training.n;
  const rows = [{ number: 0, share: 0 }, ...toRows(BLOCK.support, (i) => ({
    number: k[i],
    share: share[i] / 100,
    tip: `the heaviest ${commas(k[i])} carry ${writePercent(share[i] / 100)}`,
  }))];
  const half = rows.find((row) => row.share >= 0.5)?.number ?? null;
  draw("weights", "weights", { rows }, { half, extent: [0, n] });
  fillNumbers("weights", () => [["heaviest", "share of the weight"], ...rows.map((row) => [commas(row.number), writePercent(row.share, 1)])]);
  listHeaviest();
  byId("all-support").addEventListener("click", () => {
    choose({ ...DEFAULTS, view: state.view, split: "training", show: "weight", sort: "-w" });
    showSection("images");
  });
}

/** The heaviest stand in the page already; their pictures come from the sprites. */
function listHeaviest() {
  const columns = columnsOf("training");
  for (const card of members(byId("heaviest"))) {
    const row = Number(card.dataset.row);
    const cell = columns.image?.[row];
    if (BLOCK.sprites && cell != null) placeImage(card.firstElementChild, cell);
    else if (BLOCK.sprites) card.firstElementChild.classList.add("none");
    else card.firstElementChild.textContent = columns.text?.[row] ?? `${nounOf("training")} ${row}`;
    card.setAttribute("aria-label", `${sayCard("training", row)}, weight ${writePercent(columns.w?.[row], 1)}`);
    card.addEventListener("click", () => openSample("training", row));
  }
  rove(byId("heaviest"));
  restFocus(byId("heaviest"));
}

function drawTraining() {
  if (!BLOCK.training) return;
  const { epoch, log10_loss: loss, margin, right, separated } = BLOCK.training;
  const signals = { since: separated, extent: [Math.min(0, ...epoch), Math.max(...epoch)] };
  const rows = (values, write) =>
    toRows(BLOCK.training, (i) => ({
      epoch: epoch[i],
      value: values[i],
      tip: `epoch ${epoch[i]}: ${write(values[i])}; ${writePercent(right[i] / 100, 1)} right`,
    })).filter((row) => Number.isFinite(row.value));
  const writeLoss = (value) => `loss ${value > -3 && value < 3 ? writeNumber(10 ** value) : tenTo(value)}`;
  draw("loss", "loss", { rows: rows(loss, writeLoss) }, signals);
  if (margin) draw("margin", "margin", { rows: rows(margin, (value) => `margin ${writeNumber(value)}`) }, signals);
  fillNumbers("training", () => [
    ["epoch", "log10 of the loss", "normalized margin", "right"],
    ...epoch.map((at, i) => [at, writeNumber(loss[i]), writeNumber(margin?.[i]), writePercent(right[i] / 100, 1)]),
  ]);
}

function drawComparison() {
  if (BLOCK.compare) drawSpread("compare", BLOCK.compare, BLOCK.compare.name, "net");
}
