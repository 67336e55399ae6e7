// How much change the answers can stand: proved, open and flipped shares, counted at the slider.
function drawChange() {
  const { nets, largest, attacked } = BLOCK.change;
  nets.forEach(({ curve }, i) => {
    const curves = toRows(curve);
    curves.push({ ...curves.at(-1), x: largest });
    draw(`change-${i}`, "change", { curves }, { extent: [0, largest], attacked });
  });
  byId("size").oninput = countChange;
  countChange();
}

/** How many samples a change of this size is proved not to flip, may flip, does flip. */
function countChange() {
  const { nets, per_input: perInput } = BLOCK.change;
  const size = Number(byId("size").value);
  const said = writeDistance(size);
  byId("size").setAttribute("aria-valuetext", said);
  nets.forEach(({ lower, upper }, i) => {
    views[`change-${i}`].signal("size", size).run();
    const flipped = upper.filter((radius) => radius <= size).length;
    const safe = lower.filter((radius, k) => radius > 0 && size <= radius && !(upper[k] <= size)).length;
    const open = lower.length - safe - flipped;
    const counts = { size: said, safe, open, flipped, percent: (perInput * size).toFixed(1) };
    for (const [kind, count] of Object.entries(counts))
      for (const place of all(`#stand-${i} [data-count=${kind}]`)) place.textContent = count;
  });
}
