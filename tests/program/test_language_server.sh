#!/bin/sh
# deepc language-server: sessions of an editor (rpc.c) with diagnostics, hover, completion, and what breaks others.
. "$(dirname "$0")/lib.sh"
: "${DEEPC_RPC:?the program that is an editor}"
case $DEEPC in
/*) ;;
*) DEEPC=$PWD/$DEEPC ;;
esac
cd "$dir" || exit 1
unset DEEPC_DEVICE
at=file://$dir name=${dir#/}

seconds=20 # of a check
session() { # session SENTENCE <STEPS; after initialize, with the folder open
    {
        cat <<EOS
send {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"rootUri":"$at","capabilities":{"textDocument":{"publishDiagnostics":{"relatedInformation":true}}},"initializationOptions":{"delay":20.5,"seconds":$seconds,"memory":100}}}
expect "id":0 & "hoverProvider":true & "positionEncoding":"utf-16" & "name":"deepc"
send {"jsonrpc":"2.0","method":"initialized","params":{}}
EOS
        cat
    } >steps
    run "$DEEPC_RPC" "$DEEPC" language-server <steps
    check "$1" test "$status" -eq 0
}

ask() { # ask ID METHOD FILE LINE CHARACTER
    echo "send {\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"textDocument/$2\",\"params\":{\"textDocument\":{\"uri\":\"$at/$3\"},\"position\":{\"line\":$4,\"character\":$5}}}"
}

farewell() { # farewell ID
    echo "send {\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"shutdown\"}"
    echo "expect \"id\":$1 & \"result\":null"
    echo 'send {"jsonrpc":"2.0","method":"exit"}'
    echo 'end 0'
}

cat >wrong.lua <<'EOF'
local dc = require "deepc"
local w = dc.param("f32[784, 10]", dc.zeros "f32[784, 10]")
local f = dc.fn("f(x: f32[32, 28, 28]) -> f32[32, 10]", function(x)
  return x:matmul(w)
end)
EOF
sed 's/x:matmul/x:flatten(2):matmul/' wrong.lua >right.lua
sed 's/return x/return = x/' wrong.lua >broken.lua
sed 's/^local dc/local nothing/; s/require "deepc"/5/' wrong.lua >other.lua

session "diagnostics as the text changes" <<EOF
open $name/a.lua 1 wrong.lua
expect "diagnostics":[{"code":"DC0301","message":"matmul: inner dims differ: axis 3 = 28 against axis 1 = 784\\n  hint: 28 * 28 = 784; :flatten(2) first?","range":{"end":{"character":17,"line":3},"start":{"character":11,"line":3}} & "message":"right: f32[784, 10], parameter made at a.lua:2" & "severity":1,"source":"deepc"}],"uri":"$at/a.lua","version":1
change $name/a.lua 2 right.lua
expect "diagnostics":[],"uri":"$at/a.lua","version":2
change $name/a.lua 3 broken.lua
expect "code":"syntax","message":"unexpected symbol near '='","range":{"end":{"character":10,"line":3},"start":{"character":9,"line":3}} & "version":3
change $name/a.lua 4 wrong.lua
change $name/a.lua 5 right.lua
expect "diagnostics":[],"uri":"$at/a.lua","version":5
change $name/a.lua 6 other.lua
expect "diagnostics":[] & "version":6
send {"jsonrpc":"2.0","method":"textDocument/didClose","params":{"textDocument":{"uri":"$at/a.lua"}}}
expect "diagnostics":[],"uri":"$at/a.lua"
$(farewell 1)
EOF

cat >hover.lua <<'EOF'
local dc = require "deepc"
local nn, optim = require "deepc.nn", require "deepc.optim"

local Net = nn.class "Net"
function Net:init() self.first = nn.Linear(784, 128) end
function Net:forward(x)
  local h = self.first(x):relu()
  h = h:sum(2)
  return h
end
local net = Net()
local batch = dc.ones "f32[64, 784]" -- batch
local step = dc.fn("step(x: f32[n, 784]) -> f32[n]", function(x)
  local y = net(
    x)
  return y
end)
step(batch)
step(dc.ones "f32[2, 784]")
local count, text = 3, "ü𝄞" local u = dc.zeros "i32[4]" local z = u + 1
for i = 1, 3 do count = count + i end
local last = net.first.weight
EOF
session "hover: types, signatures, help" <<EOF
open $name/hover.lua 1 hover.lua
$(ask 1 hover hover.lua 6 8)
expect "id":1 & h: f32[n=64, 128]\\n | f32[n=2, 128] & "range":{"end":{"character":9,"line":6},"start":{"character":8,"line":6}}
$(ask 2 hover hover.lua 7 2)
expect "id":2 & h: f32[n=64]\\n | f32[n=2]
$(ask 3 hover hover.lua 7 6)
expect "id":3 & h: f32[n=64, 128]\\n | f32[n=2, 128]
$(ask 4 hover hover.lua 7 8)
expect "id":4 & sum: f32[n=64]\\n & x:sum(axes?)
$(ask 5 hover hover.lua 12 6)
expect "id":5 & step(x: f32[n, 784]) -> f32[n] & specialisations: n=64; n=2
$(ask 6 hover hover.lua 13 8)
expect "id":6 & y: f32[n=64]\\n | f32[n=2]
$(ask 7 hover hover.lua 5 22)
expect "id":7 & x: f32[n=64, 784]\\n | f32[n=2, 784]
$(ask 8 hover hover.lua 6 17)
expect "id":8 & self.first: nn.Linear 784 -> 128
$(ask 9 hover hover.lua 4 36)
expect "id":9 & nn.Linear(inputs, outputs, options?)
$(ask 10 hover hover.lua 0 7)
expect "id":10 & Tensors, typed functions that are traced
$(ask 11 hover hover.lua 11 41)
expect "id":11,"jsonrpc":"2.0","result":null
$(ask 12 hover hover.lua 19 35)
expect "id":12 & u: i32[4] & "range":{"end":{"character":36,"line":19},"start":{"character":35,"line":19}}
$(ask 13 hover hover.lua 19 67)
expect "id":13 & u: i32[4] & "range":{"end":{"character":68,"line":19},"start":{"character":67,"line":19}}
$(ask 14 hover hover.lua 21 24)
expect "id":14 & net.first.weight: f32[784, 128]   a parameter
$(ask 15 hover hover.lua 20 16)
expect "id":15 & count: integer 4\\n     | integer 6\\n     | integer 9
$(ask 16 definition hover.lua 4 36)
expect "id":16 & library/deepc/nn.lua
$(ask 17 hover hover.lua 99 0)
expect "id":17,"jsonrpc":"2.0","result":null
send {"jsonrpc":"2.0","id":18,"method":"textDocument/documentSymbol","params":{"textDocument":{"uri":"$at/hover.lua"}}}
expect "id":18 & "name":"Net:forward" & "name":"step"
$(farewell 19)
EOF

cat >completion.lua <<'EOF'
local dc = require "deepc"
local nn = require "deepc.nn"
local x = dc.ones "f32[64, 784]"
local net = nn.Sequential { nn.Linear(784, 10) }
local f = dc.fn("f(x: f32[2]) -> f32[2]", function(x) return x end)
print(x, net, f)
EOF
cat completion.lua - >typing.lua <<'EOF'
dc.
x:
nn.cross_en
net:
f:
x.
local m = require "deepc.met
net[1].weight:reshape(2):
nn.cross_entropy(x, 
"dc.
EOF
session "completion while a line is typed" <<EOF
open $name/c.lua 1 completion.lua
expect "diagnostics":[] & "version":1
change $name/c.lua 2 typing.lua
expect "code":"syntax" & "version":2
$(ask 1 completion c.lua 6 3)
expect "id":1 & {"data":["deepc","dc","fn"],"detail":"dc.fn(signature, body, sizes?, options?)","kind":3,"label":"fn"} & "label":"zeros"
$(ask 2 completion c.lua 7 2)
expect "id":2 & "detail":"x:sum(axes?)","kind":2,"label":"sum" & "detail":"x:reshape(...)" & "label":"gather"
$(ask 3 completion c.lua 8 11)
expect "id":3 & "label":"cross_entropy" & "kind":7,"label":"Linear"
$(ask 4 completion c.lua 9 4)
expect "id":4 & "label":"parameters" & "label":"summary"
$(ask 5 completion c.lua 10 2)
expect "id":5 & "label":"explain"
$(ask 6 completion c.lua 11 2)
expect "id":6 & "detail":"f32","kind":10,"label":"dtype" & "label":"shape"
$(ask 7 completion c.lua 12 28)
expect "id":7 & "label":"deepc.metrics","textEdit":{"newText":"deepc.metrics","range":{"end":{"character":28,"line":12},"start":{"character":19,"line":12}}}
$(ask 8 completion c.lua 13 25)
expect "id":8 & "label":"sum"
$(ask 9 signatureHelp c.lua 14 20)
expect "id":9 & "activeParameter":1 & "label":"nn.cross_entropy(logits, labels, options?)"
send {"jsonrpc":"2.0","id":10,"method":"completionItem/resolve","params":{"label":"sum","data":["deepc","Tensor","sum"]}}
expect "id":10 & "kind":"markdown" & x:sum(axes?)
$(ask 11 hover c.lua 2 6)
expect "id":11 & x: f32[64, 784]
$(farewell 12)
EOF

long=$(head -c 100000 /dev/zero | tr '\0' a) blanks=$(printf '%100000s' '')
printf 'require "deepc"\nlocal x = %s; print(x)\nlocal function f()%s end\nf()\n' "$long" "$blanks" >wide.lua
session "lines of 100,000 bytes" <<EOF
open $name/wide.lua 1 wide.lua
expect "uri":"$at/wide.lua"
$(ask 1 completion wide.lua 1 100010)
within 5000 "id":1
$(ask 2 hover wide.lua 1 100014)
within 5000 "id":2
send {"jsonrpc":"2.0","id":3,"method":"textDocument/documentSymbol","params":{"textDocument":{"uri":"$at/wide.lua"}}}
within 5000 "id":3 & "name":"f"
$(farewell 4)
EOF

# ---- scripts that do not end well ----

printf 'require "deepc"\nwhile true do end\n' >endless.lua
printf 'require "deepc"\nlocal s = ("x"):rep(1e5)\nlocal _ = s:find(("x*"):rep(40) .. "b")\n' >pattern.lua
printf 'require "deepc"\nlocal t = {}\nfor i = 1, 1e9 do t[i] = ("x"):rep(1e7) .. i end\n' >hog.lua
printf 'require "deepc"\ndebug.setmetatable(0, { __index = load(string.dump(function() end):gsub("....$", "")) })\nos.exit(7)\n' >exit.lua
cat >world.lua <<'EOF'
require "deepc"
os.remove "kept.txt"
local f = io.open("kept.txt", "w")
f:write "changed"
f:close()
os.execute "touch made.txt"
io.popen("touch made.txt"):close()
print "text"
io.stdout:write "text"
io.stderr:write "text"
require "deepc".trace("kept.txt"):stop()
error "reached"
EOF
echo kept >kept.txt
session "an endless script ends when the text changes; scripts that change files, and leave" <<EOF
open $name/e.lua 1 endless.lua
pause 100
change $name/e.lua 2 right.lua
within 10000 "diagnostics":[] & "version":2
open $name/w.lua 1 world.lua
expect "message":"reached & the script stopped here & "line":11
open $name/x.lua 1 exit.lua
expect "diagnostics":[],"uri":"$at/x.lua"
open $name/w.lua 2 right.lua
expect "diagnostics":[],"uri":"$at/w.lua","version":2
$(farewell 1)
EOF
check "the file is as it was" test "$(cat kept.txt)" = kept
check "no other one was made" test ! -e made.txt
seconds=1
session "an endless script and one in a pattern, whose time is over" <<EOF
open $name/p.lua 1 pattern.lua
open $name/e.lua 1 endless.lua
expect "message":"the script had not ended when its time was over & "severity":3 & "uri":"$at/e.lua"
expect "message":"deepc could not check this script: it did not end in time" & "uri":"$at/p.lua"
$(farewell 1)
EOF
seconds=20
if nm "$DEEPC" 2>/dev/null | grep -q __asan_init; then
    skip "what a script may take of memory is not limited under the address sanitizer"
else
    session "a script that takes all memory" <<EOF
open $name/h.lua 1 hog.lua
expect "message":"not enough memory" & "uri":"$at/h.lua"
memory 300000
$(farewell 1)
EOF
fi

# ---- what a client may do wrong ----

session "messages that are none" <<EOF
raw Content-Length: 5\\r\\n\\r\\n{"a":
expect "code":-32700 & "id":null
send [1, 2]
expect "code":-32600
send {"jsonrpc":"2.0","id":{},"method":"shutdown"}
expect "code":-32600
send {"jsonrpc":"2.0","id":1,"method":"textDocument/unknown","params":{}}
expect "code":-32601 & no method 'textDocument/unknown' & "id":1
send {"jsonrpc":"2.0","method":"textDocument/unknown","params":{}}
send {"jsonrpc":"2.0","method":"\$/cancelRequest","params":{"id":77}}
send {"jsonrpc":"2.0","method":"\$/cancelRequest"}
send {"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":7}}
send {"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"$at/none.lua"},"contentChanges":[{"text":"x"}]}}
send {"jsonrpc":"2.0","id":"two","method":"textDocument/hover","params":{"textDocument":{"uri":"$at/none.lua"},"position":{"line":0,"character":0}}}
expect "code":-32602 & "id":"two"
send {"jsonrpc":"2.0","id":3,"method":"textDocument/hover","params":[]}
expect "code":-32602 & "id":3
send {"jsonrpc":"2.0","id":4,"method":"initialize","params":{}}
expect "code":-32600 & "id":4
raw Content-Length: -5\\r\\n\\r\\nxxxxx
expect left out: a Content-Length that is no number
raw Content-Length: 100000000000\\r\\n
raw \\r\\n
expect left out: a message of 100000000000 bytes
close
end 1
EOF
session "requests are answered whose sender writes nothing more" <<EOF
open $name/a.lua 1 right.lua
expect "diagnostics":[] & "version":1
$(for id in 11 12 13 14 15 16 17 18; do ask $id completion a.lua 1 15; done)
close
$(for id in 11 12 13 14 15 16 17 18; do echo "expect \"id\":$id"; done)
end 1
EOF
session "a message that is too long is left out, and the next one read" <<EOF
raw Content-Length: 70000000\\r\\n\\r\\n
expect left out: a message of 70000000 bytes
zeros 70000000
memory 300000
raw no header\\n
expect left out: a line that is none of a header
send {"jsonrpc":"2.0","id":1,"method":"nothing"}
expect "code":-32601 & "id":1
$(farewell 2)
EOF
session "a request that waits is cancelled" <<EOF
open $name/e.lua 1 endless.lua
$(ask 1 hover e.lua 0 0)
send {"jsonrpc":"2.0","method":"\$/cancelRequest","params":{"id":1}}
within 1000 "code":-32800 & "id":1
$(ask 2 hover e.lua 0 0)
send {"jsonrpc":"2.0","method":"textDocument/didClose","params":{"textDocument":{"uri":"$at/e.lua"}}}
within 1000 "code":-32800 & "id":2
absent 20 "id":1,
open $name/e.lua 1 endless.lua
$(ask 4 hover e.lua 0 0)
send {"jsonrpc":"2.0","method":"\$/cancelRequest","params":{"id":4}}
within 1000 "code":-32800 & "id":4
send {"jsonrpc":"2.0","method":"textDocument/didClose","params":{"textDocument":{"uri":"$at/e.lua"}}}
absent 50 "id":4
open $name/e.lua 1 endless.lua
$(ask 5 hover e.lua 0 0)
open $name/e.lua 2 right.lua
within 10000 "id":5,"jsonrpc"
$(farewell 3)
EOF

printf 'send {"jsonrpc":"2.0","id":1,"method":"shutdown"}\nexpect "code":-32002\nsend {"jsonrpc":"2.0","method":"exit"}\nend 1\n' >steps
run "$DEEPC_RPC" "$DEEPC" language-server --stdio <steps
check "initialize comes first; exit without shutdown is status 1" test "$status" -eq 0
run "$DEEPC" language-server --tcp
check "an option that is none" warns "usage: deepc language-server"
check "its status" test "$status" -eq 1

# Nothing is left of checks when the server ends.
printf 'open %s/e.lua 1 endless.lua\npause 300\nclose\nend 1\n' "$name" | sed '1i\
send {"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}' >steps
run "$DEEPC_RPC" "$DEEPC" language-server <steps
check "the server ends while a check runs" test "$status" -eq 0
closing
