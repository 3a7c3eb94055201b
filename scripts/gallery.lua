-- The page docs/gallery.md: what the examples draw, and the lines that draw it. Run by scripts/gallery.
--
--   deepc scripts/gallery.lua             writes the page
--   deepc scripts/gallery.lua commands    the runs that draw the pictures: "heat.svg", a tab, its command; a line each
--
-- Loaded with the argument "text" it returns the page (tests/lua/test_gallery.lua).

local PAGE = "docs/gallery.md"

-- A picture, the example that draws it, its options (FILE is the path of the picture), what is seen; where its code
-- begins and ends, which are lines of the example.
local pictures = {
  { "spirals.svg", "spirals", "--plot FILE",
    "Two spirals and what a small network with residual blocks says of the plane.", "if options.plot then", "end" },
  { "neural_ode.svg", "neural_ode", "--plot FILE",
    "A spiral, and what a network that learnt its differential equation from noisy points makes of the same start: "
    .. "the gradients go back through all Runge-Kutta steps of a `dc.scan`.", "if options.plot then", "end" },
  { "gaussian_process.svg", "gaussian_process", "--plot FILE",
    "Gaussian process regression: mean and 95 % interval, wide where no points were.", "if options.plot then", "end" },
  { "heat.svg", "heat", "--plot FILE",
    "An inverse problem: temperatures at the start, found from what 16 sensors measured later.",
    "if options.plot then", "end" },
  { "cartpole_reinforce.svg", "cartpole_reinforce", "--plot FILE",
    "How long a pole stays up, while a policy learns by REINFORCE; an iteration with its 32 episodes is one typed "
    .. "function.", "if options.plot then", "end" },
  { "word_vectors.svg", "word_vectors", "--plot FILE",
    "Words of the King James Bible by their vectors, which nobody told what numbers and animals are.",
    "  local words_of_all = dc.concat(rows)", "end" },
  { "autoencoder.svg", "autoencoder", "--plot FILE", "SGD and Adam on the same autoencoder, on a logarithmic scale.",
    "if options.plot then", "end" },
  { "conv_lstm.png", "conv_lstm", "--plot FILE",
    "A square that moves and bounces; below, what a ConvLSTM says of each frame before it comes.",
    "if options.plot then -- frames beside each other, each point as 5 x 5 pixels, a margin round each frame", "end" },
  { "fashion_mnist.svg", "fashion_mnist", "--epochs 2 --loss-log FILE.log --plot STEM",
    "The loss of every step of two epochs of Fashion-MNIST.", "  local losses = read_log(options.loss_log)", "end" },
  { "vae.png", "vae", "--samples FILE", "Clothes that do not exist, drawn by a variational autoencoder.",
    "local draw = dc.fn(", "end)" },
  { "diffusion.png", "diffusion", "--samples FILE", "Clothes by denoising diffusion: noise, and 200 steps of a U-Net.",
    "local images = average:averaged(draw)",
    "data.write_image(options.samples, (images * 255):cast(\"u8\"):reshape(5, 5, 28, 28):permute(1, 3, 2, 4)"
    .. ":reshape(140, 140))" },
}

-- The lines of an example from one to another, without what they are indented by.
local function code_of(picture)
  local path, lines = ("examples/%s.lua"):format(picture[2]), nil
  for line in io.lines(path) do
    if not lines and line:sub(1, #picture[5]) == picture[5] then
      lines = {}
    end
    if lines then
      lines[#lines + 1] = line
      if line == picture[6] then
        break
      end
    end
  end
  assert(lines and lines[#lines] == picture[6], path .. " has no longer the lines that scripts/gallery.lua shows")
  local indent = lines[1]:match "^ *"
  if indent ~= "" then -- inside of an if, whose end is not shown
    table.remove(lines)
  end
  for i, line in ipairs(lines) do
    lines[i] = line:gsub("^" .. indent, "")
  end
  return table.concat(lines, "\n")
end

local function command_of(picture, file)
  local options = picture[3]:gsub("FILE", file):gsub("STEM", (file:gsub("%.%w+$", "")))
  return ("examples/%s.lua %s"):format(picture[2], options)
end

local function page()
  local out = { "# Gallery", "",
    "What [the examples](../examples/README.md) draw, with the lines that draw it: charts by `deepc.plot`"
    .. " ([reference](reference/deepc.plot.md)), images by", "`data.write_image` ([data.md](data.md)). Each is drawn"
    .. " by the command above its code; `scripts/gallery` draws all of them.", "" }
  for i, picture in ipairs(pictures) do -- thumbnails first
    out[#out + 1] = ('[<img src="gallery/%s" alt="%s" width="180">](#%s)%s'):format(picture[1], picture[2], picture[2],
      i < #pictures and "" or "\n")
  end
  for _, picture in ipairs(pictures) do
    local lines = { "## " .. picture[2], "", picture[4], "", ("![%s](gallery/%s)"):format(picture[4]:match "^[^:,;]+",
      picture[1]), "", "```sh", "deepc " .. command_of(picture, picture[1]), "```", "", "```lua",
      code_of(picture), "```", "", ("All of it: [%s.lua](../examples/%s.lua)."):format(picture[2], picture[2]), "" }
    table.move(lines, 1, #lines, #out + 1, out)
  end
  out[#out + 1] = "<!-- Made by scripts/gallery -->"
  return table.concat(out, "\n") .. "\n"
end

local what = ...
if what == "text" then
  return page()
elseif what == "commands" then
  for _, picture in ipairs(pictures) do
    print(picture[1] .. "\t" .. command_of(picture, "docs/gallery/" .. picture[1]))
  end
else
  local f = assert(io.open(PAGE, "wb"))
  f:write(page())
  f:close()
  print(PAGE)
end
