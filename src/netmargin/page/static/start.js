// The page as a whole: the switch, the sections, the order in which things are drawn.
function showState() {
  writeHash();
  press(byId("switch"), state.split);
  for (const element of document.querySelectorAll("[data-split]"))
    element.hidden = element.dataset.split !== state.split;
  if (byId("gallery")) {
    showFilters();
    showSamples();
  }
  drawHistogram();
  drawClasses();
}

/** Go to a section and leave the URL to the choices. */
function showSection(id) {
  const section = byId(id);
  section?.scrollIntoView();
  const heading = section?.querySelector("h2") ?? section;
  heading?.setAttribute("tabindex", "-1");
  heading?.focus({ preventScroll: true });
}

function goTo(event) {
  event.preventDefault();
  showSection(event.currentTarget.hash.slice(1));
}

/** Copy a line of Python; where the browser forbids it the line is marked, ready to be copied. */
async function copyLine({ currentTarget: button }) {
  const line = button.parentElement.querySelector("code");
  try {
    await navigator.clipboard.writeText(line.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  } catch {
    getSelection().selectAllChildren(line);
  }
}

function start() {
  const section = location.hash.includes("=") ? null : location.hash.slice(1);
  readHash();
  onPress(byId("switch"), (split) => choose({ split }));
  for (const link of document.querySelectorAll("nav a")) link.addEventListener("click", goTo);
  for (const button of document.querySelectorAll(".copy")) button.addEventListener("click", copyLine);
  rove(document.querySelector(".examples"));
  // On a phone the filters wait folded; on a desktop they have no fold.
  const fold = document.querySelector("details.fold");
  if (fold) fold.open = innerWidth > 640;
  listenToFilters();
  listenToGallery();
  listenToClasses();
  showState();
  drawSupport();
  drawTraining();
  drawComparison();
  drawChange();
  if (section) showSection(section);
  document.documentElement.dataset.ready = "";
}
