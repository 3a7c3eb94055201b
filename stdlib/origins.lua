-- What a script wants loaded, as the path of a file: URLs, names of hubs, formats of other programs.

local _, core = ...

-- What is no file of tensors, by the end of its name, and what to do about it.
local foreign = {
  onnx = "a graph of ONNX: torch.save or safetensors.torch.save_file its weights, dc.load(path, net) into a network",
  h5 = "weights of Keras: save them with safetensors, and dc.load(path, net) into a network",
  keras = "a model of Keras: save its weights with safetensors, and dc.load(path, net) into a network",
  tflite = "a model of TensorFlow Lite: convert its weights to safetensors",
  pb = "a graph of TensorFlow: convert its weights to safetensors",
  msgpack = "weights of Flax: save them with safetensors.flax.save_file",
  t7 = "an object of Torch7: write its tensors as .npy or safetensors",
}

-- The path of what a script wants loaded: URLs are fetched once, as data.fetch does.
function core.path_to_load(op, path)
  local scheme, rest = path:match "^(%a+)://(.*)$"
  if scheme == "hf" then
    core.fail("ARG", op, ("%s is a name of the Hugging Face Hub"):format(core.shown(path)),
      ("https://huggingface.co/%s/resolve/main/model.safetensors is a file of it; models.load takes a local folder")
      :format(rest:match "^[%w._-]+/[%w._-]+" or "OWNER/NAME"))
  elseif scheme then
    return require "deepc.data".fetch(path)
  end
  local what = foreign[(path:match "%.(%w+)$" or ""):lower()]
  if what then
    core.fail("FORMAT", op, ("%s is no file of tensors"):format(path), what)
  end
  return path
end

return {}
