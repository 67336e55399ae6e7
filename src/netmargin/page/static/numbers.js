// Numbers as the page writes them: a true minus sign, commas, few digits, "–" for none.
const commas = (count) => count.toLocaleString("en-US");
const signed = (value, text) => (value < 0 ? `−${text}` : text);

/** A distance: two decimals, three below 0.095, fewer where it is large, as Python writes it. */
function writeDistance(value, down = false) {
  if (value == null) return "–";
  const size = Math.abs(value);
  if (size === Infinity) return signed(value, "∞");
  if (size > 0 && size < 0.0005) return value > 0 ? "<0.001" : ">−0.001";
  if (size >= 1e6) return writeNumber(value, down);
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size > 0 && size < 0.095 ? 3 : 2;
  const unit = 10 ** digits;
  // toFixed rounds as Python does, and toLocaleString does not.
  const rounded = down ? Math.floor(size * unit) / unit : Number(size.toFixed(digits));
  return signed(value, rounded.toLocaleString("en-US", { minimumFractionDigits: digits }));
}

/** What is proved is rounded down. */
const writeProved = (value) => writeDistance(value, true);

/** A share of 1 as percent with one decimal, never 0.0% or 100.0% for what is only near to it. */
function writePercent(share) {
  if (share == null) return "–";
  if (share > 0 && share <= 0.0005) return "<0.1%";
  if (share >= 0.9995 && share < 1) return ">99.9%";
  return `${(100 * share).toFixed(1)}%`;
}

/** A number with three significant digits, powers of ten where it is very large or small. */
function writeNumber(value, down = false) {
  if (value == null) return "–";
  const size = Math.abs(value);
  if (size === Infinity) return signed(value, "∞");
  const digits = { minimumSignificantDigits: 3, maximumSignificantDigits: 6 };
  if (size === 0 || (size >= 1e-4 && size < 1e6))
    return signed(value, Number(size.toPrecision(3)).toLocaleString("en-US", digits));
  const [mantissa, exponent] = size.toExponential(down ? 3 : 1).split("e");
  return signed(value, `${mantissa.slice(0, 3)}·${powerOfTen(+exponent)}`);
}

const powerOfTen = (exponent) =>
  "10" + String(Math.round(exponent)).replace(/./g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
