#!/bin/sh
# What ranks save: the same values under every mesh and in one process; training that goes on with another number of
# ranks; saves that fail or are killed leave the set that was there.
#
#   DEEPC_TEST_KILLS=20   how often (3)
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_ranks.sh"
some=${launchers% *} # both do the same here: test_ranks_data.sh has the other one
script=tests/ranks/files.lua
keep_kernels

well() {
    check "$1" test "$status" -eq 0
}

files_of() {
    for file in "$1"*; do
        printf '%s ' "${file##*/}"
    done
}

# Losses of a whole run, and of one in two halves.
near() {
    paste "$1" "$2" | awk '{ d = $1 - $2; if (d * d > 1e-12 || NF != 2) bad = 1 } END { exit bad || NR != 6 }'
}

one $script save "$dir/one.safetensors"
well "one process saves"
cp "$dir/one.safetensors" "$dir/copy.safetensors"
one $script train "$dir/whole"
well "one process trains"

for launcher in threads $some; do
    for made in "2 data=2" "2 model=2" "4 data=2,model=2"; do
        n=${made%% *} mesh=${made#* }
        set=$dir/$launcher-$mesh.safetensors
        ranks "$launcher" "$n" $script save "$set" "$mesh"
        well "$launcher: $mesh saves"
        one $script load "$set"
        well "$launcher: one process loads what $mesh saved"
        for other in "2 data=2" "2 model=2" "4 model=2,data=2"; do
            ranks "$launcher" "${other%% *}" $script load "$set" "${other#* }"
            well "$launcher: ${other#* } loads what $mesh saved"
        done
    done
    ranks "$launcher" 4 $script load "$dir/one.safetensors" data=2,model=2
    well "$launcher: ranks load what one process saved"
    ranks "$launcher" 4 $script load "$dir/one.safetensors" data=4
    well "$launcher: ranks load what one process saved, under another mesh"
    ranks "$launcher" 4 $script foreign "$dir/foreign-$launcher.safetensors" data=2,model=2
    well "$launcher: ranks load weights of other programs"

    # What is at a path is the newest, whoever wrote it, and nothing is left of what was there.
    set=$dir/$launcher-model=2
    ranks "$launcher" 2 $script save "$set.safetensors" model=2
    check "$launcher: the files of a second save" test "$(files_of "$set")" = \
        "$launcher-model=2.1-00001-of-00002.safetensors $launcher-model=2.1-00002-of-00002.safetensors \
$launcher-model=2.safetensors.index.json "
    one $script save "$set.safetensors"
    check "$launcher: one process replaces a set" test "$(files_of "$set")" = "$launcher-model=2.safetensors "
    check "$launcher: with the bytes of always" cmp -s "$set.safetensors" "$dir/copy.safetensors"
    ranks "$launcher" 2 $script save "$set.safetensors" data=2
    check "$launcher: a set replaces a file" test "$(files_of "$set")" = \
        "$launcher-model=2-00001-of-00002.safetensors $launcher-model=2-00002-of-00002.safetensors \
$launcher-model=2.safetensors.index.json "
    run "$DEEPC" inspect "$set.safetensors"
    check "$launcher: inspect shows whole tensors" says "rows         F32   [8, 6]     192, in 2 parts"

    # A rank that cannot write: an error on all, and the old set.
    ranks "$launcher" 2 $script fails "$set.safetensors" data=2
    well "$launcher: a save that fails leaves the set"
    check "$launcher: the rank that fails says why" warns \
        ": $set.1-00002-of-00002.safetensors: is a directory"
    check "$launcher: the others know" warns \
        "save: rank 1 has failed: $set.1-00002-of-00002.safetensors: is a directory"
    rmdir "$set.1-00002-of-00002.safetensors"
    check "$launcher: nothing is left of it" test "$(files_of "$set")" = \
        "$launcher-model=2-00001-of-00002.safetensors $launcher-model=2-00002-of-00002.safetensors \
$launcher-model=2.safetensors.index.json "

    mkdir -p "$dir/blocked-$launcher.safetensors.index.json/x"
    ranks "$launcher" 2 $script save "$dir/blocked-$launcher.safetensors" data=2
    check "$launcher: an index that cannot be written" warns "save: rank 0 has failed: $dir/blocked-$launcher.safetensors"
    check "$launcher: leaves no files" test "$(files_of "$dir/blocked-$launcher")" = \
        "blocked-$launcher.safetensors.index.json "
    ranks "$launcher" 2 $script save "$dir/none/x" data=2
    check "$launcher: a folder that is not there" warns "$dir/none/x-00001-of-00002.safetensors: cannot be written"

    # Training under a mesh, and under others where it goes on.
    run_of=$dir/train-$launcher
    ranks "$launcher" 4 $script train "$run_of" data=2,model=2
    well "$launcher: ranks train"
    check "$launcher: losses are those of one process" near "$dir/whole.losses" "$run_of.losses"
    for way in "1:- 4:data=2,model=2" "2:data=2 1:-" "4:data=2,model=2 2:model=2"; do
        rm -f "$run_of"*
        for half in first:${way%% *} rest:${way#* }; do
            case=${half%%:*} made=${half#*:}
            if [ "${made%%:*}" = 1 ]; then
                one $script "$case" "$run_of"
            else
                ranks "$launcher" "${made%%:*}" $script "$case" "$run_of" "${made#*:}"
            fi
            well "$launcher: $half of $way"
        done
        check "$launcher: losses of $way" near "$dir/whole.losses" "$run_of.losses"
    done

    # What cannot be.
    ranks "$launcher" 2 $script differ "$dir/differ.safetensors" data=2
    check "$launcher: ranks that save other things" warns \
        "what is saved differs between ranks: rank 0 has 'a: f32[2]', rank 1 'a: f32[3]'"
    ranks "$launcher" 2 $script misfit "$set.safetensors" data=2
    check "$launcher: other sizes" warns "tensor 'rows' is f32[8, 6], the parameter f32[8, 7]: axis 2: 6 against 7"
    ranks "$launcher" 2 $script alone "$dir/alone-$launcher.safetensors" data=2
    check "$launcher: one rank alone has a part" warns "save: 'a' is a part of [8]"
    ranks "$launcher" 2 $script gguf "$dir/gguf-$launcher" data=2
    check "$launcher: GGUF has no parts" warns "GGUF files hold whole values"
    mv "$set-00002-of-00002.safetensors" "$dir/away"
    ranks "$launcher" 2 $script load "$set.safetensors" data=2
    check "$launcher: a file of a set is missing" warns "$launcher-model=2-00002-of-00002.safetensors: No such file"
done

# One rank is killed at any moment; what is loaded then is one save.
kill_one() { # kill_one LAUNCHER NUMBER
    set=$dir/kill-$1-$2
    (ranks "$1" 2 $script forever "$set" data=2) >/dev/null 2>&1 &
    started=$!
    waited=0
    while [ ! -e "$set.ready" ] && [ $waited -lt 300 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    sleep "0.0$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')"
    kill -9 "$(cat "$set.pid.$(($2 % 2))")"
    wait $started
    one $script one_number "$set"
    well "$1: rank $(($2 % 2)) is killed, and a whole set is there"
}

for launcher in threads $some; do
    number=0
    while [ $number -lt "${DEEPC_TEST_KILLS:-3}" ]; do
        kill_one "$launcher" $number
        number=$((number + 1))
    done
done

closing
