// What the extension of extras/editors/vscode does, in a stand-in for VS Code: vscode.js EXTENSION PROGRAM FILE. A line for each thing.

"use strict";
const fs = require("fs");
const Module = require("module");
const [extension, program, file] = process.argv.slice(2);

const say = (...words) => console.log(words.join("  "));
const log = []; // shown at the end: when the server that a restart ends has ended depends on the machine
process.on("exit", () => log.forEach((text) => say("log", text)));
const events = {};
const providers = {};
const on = (name) => (f) => {
  events[name] = f;
  return { dispose() {} };
};
const register = (name) => (selector, provider) => {
  providers[name] = provider;
  return { dispose() {} };
};

class Position { constructor(line, character) { Object.assign(this, { line, character }); } }
class Range { constructor(a, b, c, d) { Object.assign(this, { start: new Position(a, b), end: new Position(c, d) }); } }
class Fields { constructor(...values) { this.values = values; } }
class Item { constructor(label, kind) { Object.assign(this, { label, kind }); } }
const uri = (text) => ({ scheme: text.split(":")[0], toString: () => text });

const collection = new Map();
let changed = () => {};
const document = {
  uri: uri(`file://${file}`), languageId: "lua", version: 1, text: fs.readFileSync(file, "utf8"),
  getText() { return this.text; },
};
let restart;
const settings = { program, seconds: 20, memory: 2048, delay: 20, arguments: [] };

const stand_in = {
  Position, Range, Location: Fields, DiagnosticRelatedInformation: Fields, ParameterInformation: Fields,
  Diagnostic: class { constructor(range, message, severity) { Object.assign(this, { range, message, severity }); } },
  MarkdownString: class { constructor(value) { this.value = value; } },
  Hover: class { constructor(contents, range) { Object.assign(this, { contents, range }); } },
  CompletionItem: Item, SignatureHelp: class {}, SignatureInformation: class { constructor(label) { this.label = label; } },
  Uri: { parse: uri },
  languages: {
    createDiagnosticCollection: () => ({
      set(u, list) { collection.set(u.toString(), list); changed(); }, clear() { collection.clear(); }, dispose() {},
    }),
    registerHoverProvider: register("hover"), registerCompletionItemProvider: register("completion"),
    registerSignatureHelpProvider: register("signature"), registerDefinitionProvider: register("definition"),
  },
  window: {
    createOutputChannel: () => ({ append: () => {}, appendLine: (text) => log.push(text), dispose() {} }),
    showErrorMessage: (text) => say("error", text),
  },
  workspace: {
    getConfiguration: () => ({ get: (name) => settings[name] }), workspaceFolders: undefined, textDocuments: [document],
    onDidOpenTextDocument: on("open"), onDidChangeTextDocument: on("change"), onDidSaveTextDocument: on("save"),
    onDidCloseTextDocument: on("close"),
  },
  commands: { registerCommand: (name, f) => { restart = f; return { dispose() {} }; } },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? stand_in : load(name, ...rest));

const diagnostics = () => new Promise((resolve) => {
  changed = () => resolve(collection.get(document.uri.toString()) || []);
});
const show = (list) => {
  list.forEach((d) => say("diagnostic", d.range.start.line + 1, d.range.start.character, d.severity, d.code, d.message.split("\n")[0]));
  say("diagnostics", list.length);
};
const edit = (from, to) => {
  document.text = document.text.replace(from, to);
  document.version++;
  const next = diagnostics();
  events.change({ document });
  return next;
};

async function main() {
  const client = require(extension);
  let next = diagnostics();
  await client.activate({ subscriptions: [] });
  show(await next);
  show(await edit("return x:matmul(w)", "local y = x:flatten(2):matmul(w)\n  return y"));
  const hover = await providers.hover.provideHover(document, new Position(3, 8));
  say("hover", hover.contents.value.replace(/\n/g, " "));
  show(await edit("return y", "return y:"));
  const items = await providers.completion.provideCompletionItems(document, new Position(4, 11));
  const sum = items.find((i) => i.label === "sum");
  say("completion", sum.detail, sum.kind);
  say("resolved", (await providers.completion.resolveCompletionItem(sum)).documentation.value.split("\n")[1]);
  const help = await providers.signature.provideSignatureHelp(document, new Position(1, 20));
  say("signature", help.signatures[0].label, help.activeParameter);
  next = diagnostics();
  await restart();
  show(await next);
  next = diagnostics();
  events.close(document);
  show(await next);
  await client.deactivate();
}

main().catch((error) => {
  say("failed", error.stack);
  process.exit(1);
});
