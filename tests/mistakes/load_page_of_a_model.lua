local models = require "deepc.models"
models.load "https://huggingface.co/openai-community/gpt2"
