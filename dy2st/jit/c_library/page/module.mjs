// Made by `dy2st build --target wasm32`. It needs model.wasm alone, in a page, a worker or node.
// Addresses come from WebAssembly as signed numbers of 32 bits: `>>> 0` makes them what they are.

const CODES = ["OK", "INVALID", "FAILED", "NO_MEMORY", "BUSY", "BAD_FILE"];
const ARRAYS = {
  bool: Uint8Array, uint8: Uint8Array, int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  float16: Uint16Array, bfloat16: Uint16Array, float32: Float32Array, float64: Float64Array,
};

/** What goes wrong; `code` is INVALID for an input, FAILED for an error that the model raises (its text has the line). */
export class ModelError extends Error {
  constructor(code, text) {
    super(text);
    this.name = "ModelError";
    this.code = code;
  }
}

/** Return a model: of a URL, bytes, a Response or a compiled module; otherwise of the file beside this one. */
export async function load(source = new URL("./MODEL.wasm", import.meta.url), options = {}) {
  const compiled = await compile(await source);
  const [section] = WebAssembly.Module.customSections(compiled, "dy2st");
  if (!section) throw new ModelError("BAD_FILE", "this WebAssembly was not made by dy2st");
  const table = JSON.parse(new TextDecoder().decode(section));
  const { exports } = await WebAssembly.instantiate(compiled, {});
  exports._initialize?.();
  return new Model({ exports, table, lost: null }, options);
}

async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (ArrayBuffer.isView(source) || source instanceof ArrayBuffer) return WebAssembly.compile(source);
  if (source instanceof Response) return WebAssembly.compile(await source.arrayBuffer());
  const here = globalThis.location?.href ?? "file:///";
  const url = new URL(source, here);
  if (url.protocol === "file:") {
    const files = await import("node:fs/promises");
    return WebAssembly.compile(await files.readFile(url));
  }
  const answer = await fetch(url);
  if (!answer.ok) throw new ModelError("BAD_FILE", `${url}: ${answer.status} ${answer.statusText}`);
  return compile(answer);
}

/** A model with its own state. Each function of the table is a method, which takes and gives values by their names. */
export class Model {
  #code;
  #instance;
  #room = 0;
  #roomBytes = 0;

  constructor(code, { seed = 0, mostBytes = 0, weights = null } = {}) {
    this.#code = code;
    const { exports } = code;
    const at = weights ? this.#put(weights) : 0;
    this.#instance = exports.create(BigInt(seed), BigInt(mostBytes), at, weights ? weights.length : 0) >>> 0;
    exports.release(at);
    if (!this.#instance) throw new ModelError(CODES[exports.created()], this.#text(exports.error(0) >>> 0));
    code.table.functions.forEach((told, number) => {
      this[told.name] = (inputs = {}) => this.#run(number, told, inputs);
    });
  }

  /** What the model can do: the functions with the names, dtypes and shapes (null: any extent) of their values. */
  get functions() {
    return this.#code.table.functions;
  }

  /** Return another model that shares the code and the weights that no function writes. */
  another(options = {}) {
    return new Model(this.#code, options);
  }

  /** Return the weights as they are now, as the bytes of a safetensors file: `load(source, {weights})` takes them. */
  save() {
    const { table, exports } = this.#alive();
    const header = new TextEncoder().encode(table.header);
    const file = new Uint8Array(8 + header.length + table.bytes);
    new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
    file.set(header, 8);
    file.set(new Uint8Array(exports.memory.buffer, exports.weights(this.#instance) >>> 0, table.bytes), 8 + header.length);
    return file;
  }

  /** Give the memory of this model back; other models of its module stay. */
  free() {
    const { exports } = this.#alive();
    exports.release(this.#room);
    exports.free(this.#instance);
    this.#instance = 0;
  }

  #alive() {
    if (this.#code.lost) throw new ModelError("FAILED", `the module ended (${this.#code.lost}): load it again`);
    if (!this.#instance) throw new ModelError("INVALID", "this model was freed");
    return this.#code;
  }

  #put(bytes) {
    const { exports } = this.#code;
    const at = exports.allocate(bytes.length) >>> 0;
    if (!at) throw new ModelError("NO_MEMORY", "no memory for the weights");
    new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }

  #text(at) {
    const bytes = new Uint8Array(this.#code.exports.memory.buffer, at);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }

  #run(number, told, inputs) {
    const { exports } = this.#alive();
    const given = checked(told, inputs);
    const count = 2 + 2 * given.length + 2 * told.outputs.length;
    const layout = new Uint32Array(exports.memory.buffer, exports.layout(number) >>> 0, count);
    const [inputBytes, outputBytes, ...places] = layout;
    const starts = [];
    let bytes = aligned(inputBytes) + aligned(outputBytes);
    for (const { elements } of given) {
      starts.push(bytes);
      bytes += aligned(elements.byteLength);
    }
    const from = this.#space(bytes);
    const view = new DataView(exports.memory.buffer);
    new Uint8Array(exports.memory.buffer, from, inputBytes).fill(0);
    given.forEach(({ elements, shape }, i) => {
      const [data, extents] = [from + places[2 * i], from + places[2 * i + 1]];
      const target = shape.length ? from + starts[i] : data;
      new Uint8Array(exports.memory.buffer, target, elements.byteLength).set(
        new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength),
      );
      if (shape.length) view.setUint32(data, target, true);
      shape.forEach((extent, axis) => view.setBigInt64(extents + 8 * axis, BigInt(extent), true));
    });
    const to = from + aligned(inputBytes);
    let code;
    try {
      code = exports.run(this.#instance, number, from, to);
    } catch (error) {
      this.#code.lost = error instanceof RangeError ? "too many calls inside of each other" : error.message;
      throw new ModelError("FAILED", `${told.name}: ${this.#code.lost}`);
    }
    if (code) throw new ModelError(CODES[code], this.#text(exports.error(this.#instance) >>> 0));
    const results = {};
    told.outputs.forEach((value, i) => {
      const at = 2 * (given.length + i);
      results[value.name] = read(value, exports.memory.buffer, to + places[at], to + places[at + 1]);
    });
    return results;
  }

  #space(bytes) {
    const { exports } = this.#code;
    if (bytes > this.#roomBytes) {
      exports.release(this.#room);
      this.#room = bytes < 2 ** 32 ? exports.allocate(bytes) >>> 0 : 0;
      this.#roomBytes = this.#room ? bytes : 0;
      if (!this.#room) throw new ModelError("NO_MEMORY", "no memory for the inputs");
    }
    return this.#room;
  }
}

const aligned = (bytes) => Math.ceil(bytes / 64) * 64;

/** Return the elements and shapes of inputs in the order of the table; ModelError for what is not as the table says. */
function checked(told, inputs) {
  const known = told.inputs.map((value) => value.name);
  for (const name of Object.keys(inputs))
    if (!known.includes(name))
      throw new ModelError("INVALID", `${told.name} has no input '${name}': its inputs are ${known.join(", ") || "none"}`);
  return told.inputs.map((value) => {
    if (inputs[value.name] === undefined) throw new ModelError("INVALID", `input '${value.name}' is missing`);
    return converted(value, inputs[value.name]);
  });
}

function converted(value, given) {
  const { name, dtype, shape: wanted } = value;
  const wrong = (text) => new ModelError("INVALID", `input '${name}': ${text}`);
  const rank = wanted.length;
  const plain = typeof given !== "object" || given === null;
  const held = plain ? [given] : ArrayBuffer.isView(given) || Array.isArray(given) ? given : given.data;
  if (held === undefined) throw wrong("a tensor is {data, shape}");
  const elements = array(dtype, held, wrong);
  const shape = !plain && given.shape ? [...given.shape] : rank === 1 ? [elements.length] : [];
  if (shape.length !== rank) throw wrong(`${rank} axes are wanted (${shown(wanted)}), not ${shape.length}`);
  if (!shape.every((extent) => Number.isSafeInteger(extent) && extent >= 0)) throw wrong(`no shape is [${shape}]`);
  const count = shape.reduce((product, extent) => product * extent, 1);
  if (count !== elements.length) throw wrong(`a shape of [${shape}] has ${count} elements, and data has ${elements.length}`);
  return { elements, shape };
}

const shown = (shape) => `[${shape.map((extent) => extent ?? "any").join(", ")}]`;

function array(dtype, held, wrong) {
  const Kind = ARRAYS[dtype];
  if (held instanceof Kind) return held;
  if (ArrayBuffer.isView(held) && !(dtype === "bool" && held instanceof Uint8ClampedArray))
    throw wrong(`data of ${dtype} is a ${Kind.name}, not a ${held.constructor.name}`);
  try {
    return dtype === "int64" ? BigInt64Array.from(held, BigInt) : Kind.from(held, number);
  } catch (error) {
    throw wrong(`${error.message} (as ${dtype})`);
  }
}

function number(given) {
  if (typeof given !== "number" && typeof given !== "boolean") throw new TypeError(`${String(given)} is no number`);
  return Number(given);
}

function read({ dtype, shape }, memory, data, extents) {
  const Kind = ARRAYS[dtype];
  const view = new DataView(memory);
  if (!shape.length) {
    const [value] = new Kind(memory.slice(data, data + Kind.BYTES_PER_ELEMENT));
    return dtype === "bool" ? value !== 0 : value;
  }
  const told = shape.map((_, axis) => Number(view.getBigInt64(extents + 8 * axis, true)));
  const count = told.reduce((product, extent) => product * extent, 1);
  const at = view.getUint32(data, true);
  return { data: new Kind(memory.slice(at, at + count * Kind.BYTES_PER_ELEMENT)), shape: told };
}
