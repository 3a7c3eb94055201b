#!/bin/sh
# The examples of science: with --quick they end soon, and with numbers that only training reaches.
. "$(dirname "$0")/lib.sh"
keep_kernels

# within LOW HIGH NUMBER -- is it a number, and from LOW to HIGH?
within() {
    awk -v low="$1" -v high="$2" -v n="${3:-none}" 'BEGIN { exit !(n ~ /^[0-9.]+$/ && n + 0 >= low && n + 0 <= high) }'
}

# number N -- field N of the last line of the output
number() {
    printf '%s\n' "$out" | awk -v n="$1" 'END { sub(",", "", $n); print $n }'
}

# resumes EXAMPLE OPTION FEWER MORE -- a run that stops early and goes on ends as one that does not
resumes() {
    run "$DEEPC" "examples/$1.lua" "$2" "$4"
    whole=$(printf '%s\n' "$out" | tail -n 1)
    run "$DEEPC" "examples/$1.lua" "$2" "$3" --checkpoint "$dir/$1"
    check "$1 writes a checkpoint" test "$status" -eq 0 -a -s "$dir/$1"
    run "$DEEPC" "examples/$1.lua" "$2" "$4" --checkpoint "$dir/$1" --resume
    check "$1 goes on as if it had not stopped" test "$(printf '%s\n' "$out" | tail -n 1)" = "$whole"
    run "$DEEPC" "examples/$1.lua" --resume
    check "$1 needs a checkpoint to go on" test "$status" -eq 1
    check "and says so" warns "resume needs"
}

run "$DEEPC" examples/gaussian_process.lua --quick --plot "$dir/curve.svg"
check "gaussian_process ends well" test "$status" -eq 0
check "its error is nearly the noise's" within 0.19 0.23 "$(number 3)"
check "its intervals hold what they say" within 92 98 "$(number 4)"
check "it draws the curve" grep -q "97.5 %" "$dir/curve.svg"
resumes gaussian_process --steps 3 5

run "$DEEPC" examples/matrix_factorisation.lua --quick
check "matrix_factorisation ends well" test "$status" -eq 0
check "its error is nearly the noise's" within 0.3 0.6 "$(number 3)"
first=$out
run "$DEEPC" examples/matrix_factorisation.lua --quick
check "the same text twice" test "$out" = "$first"
run "$DEEPC" examples/matrix_factorisation.lua --quick --seed 1
check "another one with another seed" test "$out" != "$first"
resumes matrix_factorisation --epochs 2 4

run "$DEEPC" examples/heat.lua --quick --plot "$dir/start.svg"
check "heat ends well" test "$status" -eq 0
check "it draws what was found" grep -q ">found<" "$dir/start.svg"
check "the diffusivity is found" within 0 0.1 "$(number 5)"
resumes heat --iterations 50 120

run "$DEEPC" examples/graph_convolution.lua --quick
check "graph_convolution ends well" test "$status" -eq 0
check "neighbours say what a paper is about" within 0.8 1 "$(number 3)"
run "$DEEPC" examples/graph_convolution.lua --quick --no-graph
check "its words alone say less" within 0.3 0.7 "$(number 3)"
resumes graph_convolution --steps 10 30

run "$DEEPC" examples/neural_ode.lua --quick --plot "$dir/spiral.svg"
check "neural_ode ends well" test "$status" -eq 0
check "it draws both spirals" grep -q ">network<" "$dir/spiral.svg"
check "its trajectory is near the spiral" within 0 0.3 "$(number 3)"
resumes neural_ode --epochs 1 2

run "$DEEPC" examples/cartpole_reinforce.lua --quick --plot "$dir/returns.svg"
check "cartpole_reinforce ends well" test "$status" -eq 0
check "it draws the returns" grep -q ">iteration<" "$dir/returns.svg"
check "the pole stays up" within 190 200 "$(number 6)"
resumes cartpole_reinforce --iterations 5 15

run "$DEEPC" examples/cartpole_dqn.lua --quick
check "cartpole_dqn ends well" test "$status" -eq 0
check "the pole stays up" within 120 200 "$(number 6)"
resumes cartpole_dqn --steps 250 450
closing
