// The page at /: a form by the kind of model, its answer as the server draws it, the request as curl and Python.
"use strict";

const $ = (id) => document.getElementById(id);
let model = null; // what GET /v1/models/NAME says
let fields = {}; // name → () => value of the request, or undefined
let token = "";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

async function call(method, path, body) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body });
  let said = {};
  try {
    said = await response.json();
  } catch {
    said = { error: { message: `the server answered with status ${response.status}` } };
  }
  if (response.status === 401) $("login").hidden = false;
  if (!response.ok) throw Object.assign(new Error(said.error?.message ?? "no answer"), { said: said.error ?? {} });
  return said;
}

function complain(error) {
  const box = $("problem");
  box.replaceChildren(error.message ?? String(error));
  if (error.said?.takes) {
    box.append(element("br"), `This model takes ${error.said.takes}. For example: `);
    box.append(element("code", { textContent: JSON.stringify(error.said.example) }));
  }
  box.hidden = false;
  $("answer").hidden = true;
}

// ------------------------------------------------------------------------------------------------ inputs

function area(id, label, value, code = false) {
  const box = element("textarea", { id, spellcheck: false, className: code ? "code" : "", value });
  $("inputs").append(element("div", {}, element("label", { htmlFor: id, textContent: label }), box));
  return box;
}

function drop(id, label, accept, take) {
  const input = element("input", { id, type: "file", accept });
  const box = element("div", { className: "drop" }, element("label", { htmlFor: id, textContent: label }), input);
  const use = async (file) => {
    if (!file) return;
    try {
      await take(file, box);
    } catch (error) {
      complain(error);
    }
  };
  input.addEventListener("change", () => use(input.files[0]));
  box.addEventListener("dragover", (event) => { event.preventDefault(); box.classList.add("over"); });
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    use(event.dataTransfer.files[0]);
  });
  $("inputs").append(box);
}

function parsed(box, what) {
  try {
    return JSON.parse(box.value);
  } catch (error) {
    throw new Error(`${what} must be JSON: ${error.message}`);
  }
}

// The file as PNG pixels: the browser reads any image, the server reads PNG.
async function asPng(file) {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, Math.sqrt(model.limits.length / (bitmap.width * bitmap.height)));
  const canvas = element("canvas", {
    width: Math.max(1, Math.floor(bitmap.width * scale)), height: Math.max(1, Math.floor(bitmap.height * scale)),
  });
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

function csvRows(text) {
  const rows = [];
  let row = [], cell = "", quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') { cell += '"'; i++; }
      else if (c === '"') quoted = false;
      else cell += c;
    } else if (c === '"') quoted = true;
    else if (c === "," || c === ";" || c === "\t") { row.push(cell); cell = ""; }
    else if (c === "\n") { row.push(cell.replace(/\r$/, "")); rows.push(row); row = []; cell = ""; }
    else cell += c;
  }
  if (cell || row.length) { row.push(cell); rows.push(row); }
  const [names, ...rest] = rows.filter((one) => one.length > 1 || one[0] !== "");
  if (!names || !rest.length) throw new Error("the file needs a line with the names of the columns, and a row");
  const value = (text) => (text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text);
  return rest.map((one) => Object.fromEntries(names.map((name, k) => [name, value(one[k] ?? "")])));
}

function words(example) {
  const one = example[0];
  return Array.isArray(one) && one.every((token) => typeof token === "string");
}

function buildInputs() {
  $("inputs").replaceChildren();
  fields = {};
  const example = model.example.instances;
  if (model.page === "registration") {
    const cloud = (shift) => Array.from({ length: 60 }, (_, i) => [
      Math.cos(i / 5 + shift) * 2 + shift, Math.sin(i / 5 + shift), (i % 12) / 4].map((v) => Math.round(v * 1000) / 1000));
    const source = area("source", "Points that move (JSON)", JSON.stringify(cloud(0.2)), true);
    const target = area("target", "Points that stay (JSON)", JSON.stringify(cloud(0)), true);
    fields = { verb: () => "register", source: () => parsed(source, "source"), target: () => parsed(target, "target") };
  } else if (model.page === "retrieval") {
    const query = area("instances", "Query rows (JSON)", JSON.stringify(example), true);
    const turned = [0, 1, 2, 3].map((k) => example[0].map((v, j) => Math.round((v + k * (j % 3 ? 0.4 : -0.3)) * 100) / 100));
    const among = area("among", "Rows to search (JSON)", JSON.stringify(turned), true);
    fields = { verb: () => "nearest", instances: () => parsed(query, "rows"), among: () => parsed(among, "rows") };
  } else if (model.page === "image") {
    const box = area("instances", "Image as rows of pixels (JSON)", JSON.stringify(example), true);
    let png = null;
    drop("file", "Drop an image here, or choose one", "image/*", async (file, place) => {
      const url = await asPng(file);
      png = url.slice(url.indexOf(",") + 1);
      place.querySelector("img")?.remove();
      place.append(element("img", { src: url, alt: "the image that was chosen" }));
      await ask();
    });
    box.addEventListener("input", () => { png = null; });
    fields = { instances: () => (png ? [{ png }] : parsed(box, "the image")) };
  } else if (model.page === "shares") {
    const box = area("instances", "Rows (JSON), or drop a csv file below", JSON.stringify(example), true);
    const group = element("select", { id: "group" }, element("option", { value: "", textContent: "no groups" }));
    let rows = null;
    drop("file", "Drop a csv file here, or choose one", ".csv,text/csv,text/plain", async (file) => {
      rows = csvRows(await file.text());
      group.replaceChildren(element("option", { value: "", textContent: "no groups" }),
        ...Object.keys(rows[0]).map((name) => element("option", { value: name, textContent: name })));
      await ask();
    });
    $("inputs").append(element("div", {}, element("label", { htmlFor: "group", textContent: "Column with groups" }), group));
    box.addEventListener("input", () => { rows = null; });
    const given = () => rows ?? parsed(box, "the rows");
    const needed = model.columns;
    fields = {
      verb: () => "shares",
      instances: () => given().map((row) => (Array.isArray(row) || !needed ? row
        : Object.fromEntries(needed.filter((name) => name in row).map((name) => [name, row[name]])))),
      groups: () => (group.value ? given().map((row) => String(row[group.value])) : undefined),
    };
  } else if (words(example) && model.input.form !== "pairs") {
    const lines = model.page === "segmenter" && example[0].some((text) => text.includes(" "));
    const box = area("instances", lines ? "Sentences, one a line" : "Text: words with spaces between them",
      example[0].join(lines ? "\n" : " "));
    const split = (text) => text.split(lines ? /\n+/ : /\s+/).map((word) => word.trim()).filter(Boolean);
    fields = { instances: () => [split(box.value)] };
  } else if (typeof example[0] === "string") {
    const box = area("instances", "Text", example[0]);
    fields = { instances: () => [box.value] };
  } else {
    const box = area("instances", "Instances (JSON)", JSON.stringify(example), true);
    fields = { instances: () => parsed(box, "instances") };
  }
}

function buildOptions() {
  const place = $("options");
  place.replaceChildren(place.querySelector("legend"));
  const add = (name, label, checked) => {
    const box = element("input", { type: "checkbox", id: `option-${name}`, checked });
    place.append(element("label", {}, box, label));
    return box;
  };
  const has = (name) => model.options.includes(name) && !fields.verb;
  if (has("probabilities")) { const box = add("probabilities", "probabilities", true); fields.probabilities = () => box.checked || undefined; }
  else if (has("scores")) { const box = add("scores", "scores", true); fields.scores = () => box.checked || undefined; }
  if (has("k_best")) { const box = add("k_best", "3 best outputs", false); fields.k_best = () => (box.checked ? 3 : undefined); }
  if (has("explain")) { const box = add("explain", "what decided", model.page === "classifier"); fields.explain = () => (box.checked ? 10 : undefined); }
  if (model.page === "segmenter") {
    const outputs = ["predict_segments", "boundary_marginals"].filter((name) => model.answers.includes(name));
    fields.outputs = () => (outputs.length ? outputs : undefined);
  }
  place.hidden = place.children.length < 2;
}

// ------------------------------------------------------------------------------------------------ requests

function request() {
  const body = {};
  for (const [name, value] of Object.entries(fields)) {
    const found = value();
    if (found !== undefined) body[name] = found;
  }
  return body;
}

function pythonOf(value) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(", ")}]`;
  if (typeof value === "object") return `{${Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${pythonOf(v)}`).join(", ")}}`;
  return JSON.stringify(value);
}

function showRequest(body) {
  const { verb = "predict", ...rest } = body;
  const url = `${location.origin}/v1/models/${encodeURIComponent(model.name)}:${verb}`;
  const data = JSON.stringify(rest).replaceAll("'", "'\\''");
  const secret = token ? " -H \"Authorization: Bearer $TOKEN\"" : "";
  $("curl").textContent = `curl -s${secret} '${url}' -d '${data}'`;
  const client = `from mercer.serve import Client\n\nclient = Client(${JSON.stringify(location.origin)}${token ? ", token=token" : ""})\n`;
  const { instances, ...options } = rest;
  const more = Object.entries(options).map(([name, value]) => `, ${name}=${pythonOf(value)}`).join("");
  $("python").textContent = client + (verb === "predict"
    ? `client.ask(${JSON.stringify(model.name)}, ${pythonOf(instances)}${more})`
    : `client.call(${JSON.stringify(model.name)}, ${JSON.stringify(verb)}${instances ? `, instances=${pythonOf(instances)}` : ""}${more})`);
  $("request").hidden = false;
}

async function ask() {
  $("problem").hidden = true;
  $("run").disabled = true;
  try {
    const body = request();
    showRequest(body);
    const said = await call("POST", `/v1/models/${encodeURIComponent(model.name)}:show`, JSON.stringify(body));
    $("drawing").innerHTML = said.html; // made by the server from escaped text
    $("answer").hidden = false;
  } catch (error) {
    complain(error);
  } finally {
    $("run").disabled = false;
  }
}

async function choose(name) {
  try {
    model = await call("GET", `/v1/models/${encodeURIComponent(name)}`);
  } catch (error) {
    complain(error);
    return;
  }
  for (const button of $("models").children) button.setAttribute("aria-current", String(button.dataset.name === name));
  document.title = `${name} · Mercer`;
  $("about").textContent = `${model.kind}. It takes ${model.input.says}.`;
  $("problem").hidden = $("answer").hidden = $("request").hidden = true;
  $("run").textContent = { registration: "Align", retrieval: "Search" }[model.page] ?? "Predict";
  buildInputs();
  buildOptions();
  $("ask").hidden = false;
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
}

async function start() {
  try {
    const { models } = await call("GET", "/v1/models");
    $("login").hidden = true;
    $("problem").hidden = true;
    $("models").replaceChildren(...models.map(({ name, kind }) => {
      const button = element("button", { type: "button" }, name, element("small", { textContent: kind }));
      button.dataset.name = name;
      button.addEventListener("click", () => choose(name));
      return button;
    }));
    const wanted = decodeURIComponent(location.hash.slice(1));
    await choose(models.some(({ name }) => name === wanted) ? wanted : models[0].name);
  } catch (error) {
    complain(error);
  }
}

$("ask").addEventListener("submit", (event) => { event.preventDefault(); ask(); });
$("ask").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); ask(); }
});
$("login").addEventListener("submit", (event) => { event.preventDefault(); token = $("token").value.trim(); start(); });
for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const text = $(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents($(button.dataset.copy));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      button.textContent = "Selected: press Ctrl + C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
start();
