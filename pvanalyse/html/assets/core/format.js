// Values written for people, as pvanalyse/units.py writes them.

const BYTE_STEPS = {
  binary: [1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]],
  si: [1000, ["B", "kB", "MB", "GB", "TB", "PB"]],
};

/** Digits after the point as Python writes them: the nearest, and of two as near the even one. */
function fixed(value, digits) {
  const size = Math.abs(value);
  const isTie = (size * 2 ** (digits + 1)) % 2 === 1;
  if (!isTie) return value.toFixed(digits);
  const lower = Math.floor(size * 10 ** digits);
  const even = (lower % 2 ? lower + 1 : lower) / 10 ** digits;
  return (Math.sign(value) * even).toFixed(digits);
}

/** The same with commas between thousands. */
function grouped(value, digits) {
  const [whole, ...fraction] = fixed(value, digits).split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, ","), ...fraction].join(".");
}

/** Three significant digits, but never fewer than the whole number has. */
function rounded(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  return grouped(value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

function formatBytes(value, units = preferences.units) {
  if (units === "bytes") return `${grouped(value, Number.isInteger(value) ? 0 : 1)} B`;
  const [base, names] = BYTE_STEPS[units];
  let size = value;
  for (const name of names.slice(0, -1)) {
    if (Math.abs(size) < base - 0.5) return name === "B" ? `${grouped(size, 0)} B` : `${rounded(size)} ${name}`;
    size /= base;
  }
  return `${rounded(size)} ${names.at(-1)}`;
}

const formatCount = (value) => grouped(value, 0);

function formatFraction(value) {
  const percent = value * 100;
  if (percent !== 0 && Math.abs(percent) < 0.005) return percent > 0 ? "< 0.01 %" : "> -0.01 %";
  return `${fixed(percent, percent !== 0 && Math.abs(percent) < 0.995 ? 2 : 1)} %`;
}

function scaled(value, scale) {
  const [factor, name] = scale.find(([limit]) => Math.abs(value) >= limit * 0.9995) ?? scale.at(-1);
  return `${rounded(value / factor)} ${name}`;
}

const formatSeconds = (value) => value === 0 ? "0 s" : scaled(value, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]);
const formatHertz = (value) => scaled(value, [[1e9, "GHz"], [1e6, "MHz"], [1e3, "kHz"], [1, "Hz"]]);

const FORMATS = {
  count: formatCount,
  cycles: formatCount,
  bytes: (value) => formatBytes(value),
  "bytes/s": (value) => `${formatBytes(value)}/s`,
  s: formatSeconds,
  Hz: formatHertz,
  fraction: formatFraction,
  address: (value) => `0x${value.toString(16)}`,
};

/** Write a value of a unit; what is missing is nothing. */
function written(value, unit) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return value;
  return unit in FORMATS ? FORMATS[unit](value) : String(value);
}

/** Cut a long name in the middle, where names of programs say least. */
function shortened(text, width) {
  if (text.length <= width) return text;
  const tail = Math.floor(((width - 1) * 3) / 5);
  return `${text.slice(0, width - 1 - tail)}…${text.slice(text.length - tail)}`;
}
