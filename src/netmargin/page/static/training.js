// Cards that Python wrote, and how training went.

/** Cards that Python wrote get the pictures of their training samples, and open them. */
function fillCards(group) {
  for (const card of members(group)) {
    const sample = sampleOf("training", Number(card.dataset.row));
    card.prepend(makePicture(sample), " ");
    card.setAttribute("aria-label", `${card.textContent} ${sayCard(sample)}`);
    card.onclick = () => openSample(sample);
  }
  restFocus(group);
}

function drawTraining() {
  const { separated, ...columns } = BLOCK.training;
  const ends = [Math.min(0, ...columns.epoch), Math.max(...columns.epoch)];
  for (const name of ["loss", "margin"])
    if (byId(`c-${name}`))
      draw(name, name, { rows: toRows(columns) }, { since: separated, extent: ends });
}
