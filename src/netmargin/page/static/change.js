// How much change the answers can stand: proved, open and flipped shares, counted at the slider.
function drawChange() {
  if (!BLOCK.change) return;
  const { nets, largest, start, attacked } = BLOCK.change;
  nets.forEach(({ curve }, i) => {
    const rows = toRows(curve, (k) => {
      const kept = attacked ? 1 - curve.flipped[k] / 100 : 1;
      return { size: curve.x[k], proved: curve.proved[k] / 100, kept, found: attacked ? kept : null };
    });
    rows.push({ ...rows.at(-1), size: largest });
    draw(`change-${i}`, "change", { curves: rows }, { extent: [0, largest], size: start });
  });
  const slider = byId("size");
  Object.assign(slider, { min: 0, max: largest, value: start });
  slider.addEventListener("input", () => showChange(Number(slider.value)));
  // Whole steps for the keys, any place for the pointer.
  slider.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageUp: 10, PageDown: -10 }[event.key];
    if (!by) return;
    event.preventDefault();
    slider.value = Number(slider.value) + (by * largest) / 100;
    showChange(Number(slider.value));
  });
  showChange(start);
  fillNumbers("change", () => [
    ["size", ...nets.flatMap(({ name }) => ["proved safe", "open", "flipped"].map((what) => (name ? `${name}: ${what}` : what)))],
    ...Array.from({ length: 21 }, (_, i) => (i * largest) / 20).map((size) => [
      writeDistance(size),
      ...nets.flatMap((net) => Object.values(countChange(net, size))),
    ]),
  ]);
}

/** How many samples a change of this size is proved not to flip, may flip, does flip. */
function countChange({ lower, upper }, size) {
  const n = lower.length;
  const flipped = upper.filter((radius) => radius != null && radius <= size).length;
  const safe = lower.filter((radius, i) => radius > 0 && size <= radius && !(upper[i] <= size)).length;
  return { safe, open: n - safe - flipped, flipped };
}

function showChange(size) {
  const { nets, per_input: perInput } = BLOCK.change;
  byId("size").setAttribute("aria-valuetext", writeDistance(size));
  const standing = document.querySelectorAll("#stand .standing");
  const cards = document.querySelectorAll("#stand .counts");
  nets.forEach((net, i) => {
    views[`change-${i}`].signal("size", size).run();
    const name = net.name ? `${net.name}: under` : "Under";
    standing[i].replaceChildren(`${name} a change of size `, make("b", {}, writeDistance(size)), `, of ${commas(net.lower.length)} ${BLOCK.splits[SPLITS[0]].noun}:`);
    for (const [kind, count] of Object.entries(countChange(net, size)))
      cards[i].querySelector(`[data-count=${kind}]`).textContent = commas(count);
  });
  const note = byId("per-input");
  const values = [writeDistance(size), (perInput * size).toFixed(1)];
  note.textContent = note.dataset.text.replace(/\{\}/g, () => values.shift());
}
