// deepc in VS Code: a client of `deepc language-server`, over its standard input and output. It needs no packages.

"use strict";
const vscode = require("vscode");
const { spawn } = require("child_process");

const SELECTOR = { language: "lua", scheme: "file" };

// ---- messages --------------------------------------------------------------------------------------

class Connection {
  constructor(program, onNotification, onEnd) {
    this.number = 0;
    this.waiting = new Map();
    this.input = Buffer.alloc(0);
    this.onNotification = onNotification;
    this.child = spawn(program, ["language-server"], { stdio: ["pipe", "pipe", "pipe"] });
    this.child.on("error", (error) => this.end(onEnd, error.message));
    this.child.on("exit", (code, signal) => this.end(onEnd, `it ended (${signal || code})`));
    this.child.stdin.on("error", () => {});
    this.child.stdout.on("data", (bytes) => this.read(bytes));
  }

  end(onEnd, why) {
    if (this.over) return;
    this.over = true;
    for (const { reject } of this.waiting.values()) reject(new Error(why));
    this.waiting.clear();
    onEnd(why);
  }

  send(message) {
    if (this.over) return;
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.child.stdin.write(`Content-Length: ${body.length}\r\n\r\n`);
    this.child.stdin.write(body);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  request(method, params, token) {
    if (this.over) return Promise.resolve(null);
    const id = ++this.number;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.send({ id, method, params });
    if (token) token.onCancellationRequested(() => this.notify("$/cancelRequest", { id }));
    return answer;
  }

  read(bytes) {
    this.input = Buffer.concat([this.input, bytes]);
    for (;;) {
      const begin = this.input.indexOf("\r\n\r\n");
      if (begin < 0) return;
      const length = /Content-Length: *(\d+)/i.exec(this.input.toString("latin1", 0, begin));
      const end = begin + 4 + Number(length[1]);
      if (this.input.length < end) return;
      const message = JSON.parse(this.input.toString("utf8", begin + 4, end));
      this.input = this.input.subarray(end);
      this.receive(message);
    }
  }

  receive(message) {
    const request = this.waiting.get(message.id);
    if (message.method !== undefined) {
      this.onNotification(message.method, message.params);
    } else if (request !== undefined) {
      this.waiting.delete(message.id);
      if (message.error) request.reject(new Error(message.error.message));
      else request.resolve(message.result);
    }
  }
}

// ---- forms of the protocol and of the editor ---------------------------------------------------------

const toRange = (r) => new vscode.Range(r.start.line, r.start.character, r.end.line, r.end.character);
const at = (document, position) => ({
  textDocument: { uri: document.uri.toString() },
  position: { line: position.line, character: position.character },
});

function toMarkdown(content) {
  return new vscode.MarkdownString(typeof content === "string" ? content : content.value);
}

function toDiagnostic(d) {
  // 1 to 4 in the protocol, 0 to 3 here
  const diagnostic = new vscode.Diagnostic(toRange(d.range), d.message, d.severity - 1);
  diagnostic.source = d.source;
  diagnostic.code = d.code;
  diagnostic.relatedInformation = (d.relatedInformation || []).map(
    (r) => new vscode.DiagnosticRelatedInformation(
      new vscode.Location(vscode.Uri.parse(r.location.uri), toRange(r.location.range)), r.message));
  return diagnostic;
}

function toItem(i) {
  const item = new vscode.CompletionItem(i.label, i.kind - 1);
  item.detail = i.detail;
  item.data = i.data;
  if (i.textEdit) {
    item.range = toRange(i.textEdit.range);
    item.insertText = i.textEdit.newText;
  }
  return item;
}

// ---- the client ------------------------------------------------------------------------------------

class Client {
  constructor() {
    this.diagnostics = vscode.languages.createDiagnosticCollection("deepc");
    this.log = vscode.window.createOutputChannel("deepc");
  }

  start() {
    const settings = vscode.workspace.getConfiguration("deepc");
    const folders = (vscode.workspace.workspaceFolders || []).map((f) => ({ uri: f.uri.toString(), name: f.name }));
    this.connection = new Connection(
      settings.get("program"),
      (method, params) => this.receive(method, params),
      (why) => this.log.appendLine(`deepc language-server: ${why}`));
    this.connection.child.stderr.on("data", (bytes) => this.log.append(bytes.toString()));
    this.ready = this.connection.request("initialize", {
      processId: process.pid,
      rootUri: folders.length > 0 ? folders[0].uri : null,
      workspaceFolders: folders.length > 0 ? folders : null,
      capabilities: { textDocument: { publishDiagnostics: { relatedInformation: true } } },
      initializationOptions: {
        seconds: settings.get("seconds"), memory: settings.get("memory"), delay: settings.get("delay"),
        arguments: settings.get("arguments"),
      },
    }).then(() => {
      this.connection.notify("initialized", {});
      vscode.workspace.textDocuments.forEach((d) => this.open(d));
    }, (error) => vscode.window.showErrorMessage(`deepc: ${error.message}; the setting deepc.program names the program`));
    return this.ready;
  }

  async stop() {
    const connection = this.connection;
    if (!connection || connection.over) return;
    await connection.request("shutdown").catch(() => {});
    connection.notify("exit");
  }

  receive(method, params) {
    if (method === "textDocument/publishDiagnostics")
      this.diagnostics.set(vscode.Uri.parse(params.uri), params.diagnostics.map(toDiagnostic));
  }

  concerns(document) {
    return document.languageId === SELECTOR.language && document.uri.scheme === SELECTOR.scheme;
  }

  open(document) {
    if (!this.concerns(document)) return;
    this.connection.notify("textDocument/didOpen", {
      textDocument: {
        uri: document.uri.toString(), languageId: document.languageId, version: document.version, text: document.getText(),
      },
    });
  }

  change(document) {
    if (!this.concerns(document)) return;
    this.connection.notify("textDocument/didChange", {
      textDocument: { uri: document.uri.toString(), version: document.version },
      contentChanges: [{ text: document.getText() }],
    });
  }

  tell(method, document) {
    if (!this.concerns(document)) return;
    this.connection.notify(method, { textDocument: { uri: document.uri.toString() } });
  }

  // What the server refuses (a request that was cancelled) is no answer.
  async ask(method, params, token) {
    await this.ready;
    return this.connection.request(method, params, token).catch(() => null);
  }

  async hover(document, position, token) {
    const answer = await this.ask("textDocument/hover", at(document, position), token);
    return answer && new vscode.Hover(toMarkdown(answer.contents), toRange(answer.range));
  }

  async complete(document, position, token) {
    const answer = await this.ask("textDocument/completion", at(document, position), token);
    return (answer || []).map(toItem);
  }

  async resolve(item, token) {
    const answer = await this.ask("completionItem/resolve", { label: item.label, data: item.data }, token);
    if (answer && answer.documentation) item.documentation = toMarkdown(answer.documentation);
    return item;
  }

  async signature(document, position, token) {
    const answer = await this.ask("textDocument/signatureHelp", at(document, position), token);
    if (!answer) return null;
    const help = new vscode.SignatureHelp();
    help.activeSignature = answer.activeSignature;
    help.activeParameter = answer.activeParameter;
    help.signatures = answer.signatures.map((s) => {
      const signature = new vscode.SignatureInformation(s.label, toMarkdown(s.documentation));
      signature.parameters = s.parameters.map((p) => new vscode.ParameterInformation(p.label));
      return signature;
    });
    return help;
  }

  async definition(document, position, token) {
    const answer = await this.ask("textDocument/definition", at(document, position), token);
    return answer && new vscode.Location(vscode.Uri.parse(answer.uri), toRange(answer.range));
  }
}

let client;

function activate(context) {
  client = new Client();
  const { workspace, languages, commands } = vscode;
  context.subscriptions.push(
    client.diagnostics, client.log,
    workspace.onDidOpenTextDocument((d) => client.open(d)),
    workspace.onDidChangeTextDocument((e) => client.change(e.document)),
    workspace.onDidSaveTextDocument((d) => client.tell("textDocument/didSave", d)),
    workspace.onDidCloseTextDocument((d) => client.tell("textDocument/didClose", d)),
    languages.registerHoverProvider(SELECTOR, { provideHover: (d, p, t) => client.hover(d, p, t) }),
    languages.registerCompletionItemProvider(SELECTOR, {
      provideCompletionItems: (d, p, t) => client.complete(d, p, t),
      resolveCompletionItem: (i, t) => client.resolve(i, t),
    }, ".", ":"),
    languages.registerSignatureHelpProvider(
      SELECTOR, { provideSignatureHelp: (d, p, t) => client.signature(d, p, t) }, "(", ","),
    languages.registerDefinitionProvider(SELECTOR, { provideDefinition: (d, p, t) => client.definition(d, p, t) }),
    commands.registerCommand("deepc.restart", async () => {
      await client.stop();
      client.diagnostics.clear();
      await client.start();
    }));
  return client.start();
}

function deactivate() {
  return client && client.stop();
}

module.exports = { activate, deactivate };
