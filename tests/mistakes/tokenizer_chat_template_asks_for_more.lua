-- A chat template with a filter that is not known.
local tokenizers = require "deepc.tokenizers"
local tok = tokenizers.load { vocab = { "[UNK]", "hello" }, kind = "bert" }
print(tok:chat({ { role = "user", content = "hello" } }, {
  template = "{% for m in messages %}\n{{ m.content | wordwrap(20) }}\n{% endfor %}",
}))
