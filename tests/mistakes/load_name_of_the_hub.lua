local dc = require "deepc"
dc.load "hf://openai-community/gpt2"
