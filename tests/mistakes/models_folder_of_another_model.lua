local models = require "deepc.models"

local folder = os.tmpname()
os.remove(folder)
os.execute("mkdir " .. folder)
local f <close> = io.open(folder .. "/config.json", "w")
f:write '{ "model_type": "t5" }'
f:close()
local ok, err = pcall(models.load, folder)
os.execute("rm -r " .. folder)
error(err, 0)
