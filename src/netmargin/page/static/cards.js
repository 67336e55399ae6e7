// One sample as a card: its image or text, what it is, how far it lies from the boundary.

/** The image of a sample, or an empty frame where it is not on the page. */
function makeImage({ image }) {
  if (image == null) return make("span", { class: "pic none", title: "not among the images here" });
  const { columns, per_sprite: perSprite } = BLOCK.sprites;
  const cell = image % perSprite;
  const [right, down] = [cell % columns, Math.floor(cell / columns)];
  const pic = make("span", { class: "pic" });
  pic.style.backgroundImage = `var(--sprite-${Math.floor(image / perSprite)})`;
  pic.style.backgroundPosition =
    `calc(var(--s) * ${-right}) calc(var(--s) * var(--tall) * ${-down})`;
  return pic;
}

const makePicture = (sample) =>
  BLOCK.sprites
    ? makeImage(sample)
    : make("span", { class: "text" }, sample.text ?? `${sample.noun} ${sample.row}`);

/** What is said of a card to those who hear it, beside what stands on it. */
const sayCard = ({ noun, row, label, wrong, answer, rival, d }) =>
  `(${noun} ${row}, label ${label}, ${wrong ? `wrong, answer ${answer}` : `right, rival ${rival}`}, ` +
  `${WHAT} ${writeDistance(d).replace("−", "minus ")})`;

const makeCaption = ({ wrong, label, answer, rival }) =>
  wrong
    ? make("span", { class: "caption" }, `${label} → ${answer}`)
    : make("span", { class: "caption" }, make("b", {}, label), ` vs ${rival}`);

/** A button that opens the sample, with its picture and what is given below it. */
function makeCard(sample, ...below) {
  const parts = [makePicture(sample), ...below];
  return makeButton(
    {
      class: sample.wrong ? "image wrong" : "image",
      "aria-label": `${parts.map((part) => part.textContent).join(" ")} ${sayCard(sample)}`,
      "data-row": sample.row,
      onclick: () => openSample(sample),
    },
    // Words apart for those who hear them.
    ...parts.flatMap((part) => [part, " "]),
  );
}

function makeFullCard(sample) {
  const number = make("span", { class: "number" }, writeDistance(sample.d));
  if (state.show !== "other") return makeCard(sample, makeCaption(sample), number);
  const other = make("span", { class: "number" }, `other: ${className(sample.o)}`);
  return makeCard(sample, makeCaption(sample), other, number);
}
