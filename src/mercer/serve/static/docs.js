// The page at /docs: the OpenAPI document of the server for people.
"use strict";

const $ = (id) => document.getElementById(id);
let token = "";

function element(tag, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.append(...children);
  return made;
}

function table(header, rows) {
  const line = (cells, tag) => element("tr", {}, ...cells.map((cell) => element(tag, {}, cell)));
  const body = element("tbody", {}, ...rows.map((row) => line(row, "td")));
  return element("div", { className: "scroll" }, element("table", {}, element("thead", {}, line(header, "th")), body));
}

function kind(schema) {
  if (schema.anyOf ?? schema.oneOf) return (schema.anyOf ?? schema.oneOf).map(kind).join(" or ");
  if (schema.type === "array") return schema.items ? `array of ${kind(schema.items)}` : "array";
  return [schema.type ?? "anything"].flat().join(" or ");
}

function fields(schema) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, one]) => [
    element("code", { textContent: name }), kind(one) + (schema.required?.includes(name) ? ", needed" : ""), one.description ?? "",
  ]);
  return rows.length ? [table(["field", "type", ""], rows)] : [];
}

function curl(method, path, body) {
  const secret = token ? ' -H "Authorization: Bearer $TOKEN"' : "";
  const data = body === undefined ? "" : ` -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`;
  return `curl -s${method === "post" && !data ? " -X POST" : ""}${secret} '${location.origin}${path}'${data}`;
}

function operation(path, method, said) {
  const request = said.requestBody?.content["application/json"];
  const example = request?.example && Object.keys(request.example).length ? request.example : undefined;
  const answers = Object.entries(said.responses).map(([status, one]) => [status, one.description]);
  const parts = [element("h2", {}, `${method.toUpperCase()} `, element("code", { textContent: path })), element("p", { textContent: said.summary })];
  if (request) parts.push(...fields(request.schema));
  if (method === "get" || example) parts.push(element("pre", {}, element("code", { textContent: curl(method, path, example) })));
  if (answers.length > 1) {
    parts.push(element("details", {}, element("summary", { textContent: "Statuses" }), table(["status", ""], answers)));
  }
  return element("section", {}, ...parts);
}

async function start() {
  const response = await fetch("/openapi.json", { headers: token ? { Authorization: `Bearer ${token}` } : {} });
  const said = await response.json();
  $("login").hidden = response.status !== 401;
  $("problem").hidden = response.ok;
  if (!response.ok) {
    $("problem").textContent = said.error.message;
    return;
  }
  const made = Object.entries(said.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, one]) => operation(path, method, one)));
  $("paths").replaceChildren(...made);
}

$("login").addEventListener("submit", (event) => { event.preventDefault(); token = $("token").value.trim(); start(); });
start();
