-- Texts of several lengths, and a tokenizer that has no token to fill rows up.
local tokenizers = require "deepc.tokenizers"
local tok = tokenizers.load { vocab = { "a", "b", "ab" }, merges = { "a b" } }
local ids = tok:encode_batch { "ab", "abab" }
print(ids)
