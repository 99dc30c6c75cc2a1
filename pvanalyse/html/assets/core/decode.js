// From what pvanalyse/html/pack.py packed to objects with typed arrays and texts.

const ARRAY_TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };

/** Names as positions in a table of strings. */
class Texts {
  constructor(codes, strings) {
    this.codes = codes;
    this.strings = strings;
    this.length = codes.length;
  }

  at(index) {
    return this.strings[this.codes[index]];
  }
}

/** Return the bytes that an element of the page holds, base64 of gzip. */
async function inflate(element) {
  const text = atob(element.textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** Return what was packed. */
function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const arrays = header.arrays.map(([type, offset, length, differences]) => {
    const values = new ARRAY_TYPES[type](buffer, 4 + size + offset, length);
    return differences ? runningSum(values) : values;
  });
  const resolve = (value) => {
    if (Array.isArray(value)) return value.map(resolve);
    if (value === null || typeof value !== "object") return value;
    if ("$" in value) return arrays[value.$];
    if ("$text" in value) return new Texts(arrays[value.$text], header.strings);
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolve(inner)]));
  };
  return resolve(header.root);
}

function runningSum(values) {
  const sums = new Float64Array(values.length);
  let sum = 0;
  for (let at = 0; at < values.length; at++) sums[at] = sum += values[at];
  return sums;
}
