#!/bin/sh
# deepc run and deepc inspect of programs of StableHLO.
. "$(dirname "$0")/lib.sh"

cat >"$dir/f.mlir" <<'MLIR'
module @jit_f {
  func.func public @main(%x: tensor<2x3xf32>, %y: tensor<3xf32>) -> (tensor<2xf32>, tensor<3xf32>) {
    %0 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<2x3xf32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    return %2, %y : tensor<2xf32>, tensor<3xf32>
  }
  func.func private @other(%x: tensor<4xi32>) -> tensor<4xi32> {
    return %x : tensor<4xi32>
  }
}
MLIR
run "$DEEPC" run "$dir/f.mlir" '{{1, 2, 3}, {4, 5, 6}}' '{1, 0, 2}'
check "it runs" says "7.0  16.0"
check "and prints each result" says "1.0  0.0  2.0"
run "$DEEPC" run --entry other "$dir/f.mlir" '{1, 2, 3, 4}'
check "another function" says "1  2  3  4"
echo 'require("deepc.data").write_npy(arg[1] .. "/x.npy", require("deepc").ones("f32[2, 3]"))' >"$dir/x.lua"
run "$DEEPC" "$dir/x.lua" "$dir"
run "$DEEPC" run --out "$dir/out.npz" --times 2 "$dir/f.mlir" "$dir/x.npy" '{1, 2, 3}'
check "it says how long it took" says " ms"
run "$DEEPC" inspect "$dir/out.npz"
check "results are in an archive" says result2

run "$DEEPC" run "$dir/f.mlir" '{1, 0, 2}'
check "an argument is missing" warns "takes 2 arguments: f32[2, 3], f32[3], and 1 is given"
run "$DEEPC" run "$dir/f.mlir" '{1, 0}' '{1, 0, 2}'
check "one has another shape" warns "a table of 3 is needed"
check "which is an error" test "$status" -eq 1
run "$DEEPC" run "$dir/f.mlir" 'abc(' '{1, 0, 2}'
check "one cannot be read" warns "argument 'abc(' is no array.npy"
run "$DEEPC" run --out "$dir/out.txt" "$dir/f.mlir" "$dir/x.npy" '{1, 2, 3}'
check "an archive has its ending" warns "ends with .npz"
run "$DEEPC" run "$dir/none.mlir"
check "a file that is not there" warns "No such file"
run "$DEEPC" run
check "a program is needed" warns "a program is needed"

run "$DEEPC" inspect "$dir/f.mlir"
check "inspect: functions" says "@main(%x: f32[2, 3], %y: f32[3]) -> (f32[2], f32[3])"
check "operations" says "1  stablehlo.reduce"
sed 's/stablehlo.multiply/stablehlo.magic/' "$dir/f.mlir" >"$dir/g.mlir"
run "$DEEPC" inspect "$dir/g.mlir"
check "what is not supported" says "line 4: stablehlo.magic: this operation"
run "$DEEPC_ALONE" inspect "$dir/f.mlir"
check "without extras it says so" warns "read by deepc.stablehlo.command, which this build has not"
run "$DEEPC_ALONE" run "$dir/f.mlir"
check "and run is no command" test "$status" -eq 1

closing
