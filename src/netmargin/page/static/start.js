// The page as a whole: what the choices show, and the order in which sections are drawn.
function showState() {
  for (const { name, value } of fields()) state[name] = value;
  writeHash();
  press("switch", state.split);
  for (const element of all("[data-split]"))
    element.hidden = element.dataset.split !== state.split;
  showSamples();
  drawHistogram();
  drawClasses();
}

function start() {
  for (const link of all("a[href^='#']")) link.onclick = followLink;
  byId("sample-close").onclick = () => byId("sample").close();
  if (SPLITS.length) {
    // On a phone the filters wait folded; on a desktop they have no fold.
    byId("fold").open = innerWidth > 640;
    onPress("switch", (split) => choose({ split }));
    listenToFilters();
    listenToGallery();
    listenToClasses();
    readHash();
    showState();
  }
  all(".chosen").forEach(fillCards);
  if (BLOCK.training) drawTraining();
  if (BLOCK.change) drawChange();
  document.documentElement.dataset.ready = "";
}
