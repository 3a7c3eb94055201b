#!/bin/sh
# What ranks get of data: the rows of one order, each row one rank, with as many steps as one process has; the same on 1, 2
# and 4 ranks.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib_ranks.sh"
some=${launchers##* } # both do the same here: test_ranks_files.sh has the other one
script=tests/ranks/data.lua
keep_kernels

# Batches of the ranks by their place along data, each value side by side.
join() { # join OUT PLACES
    set -- "$1" "$2" 0
    files=
    while [ "$3" -lt "$2" ]; do
        file=$(echo "$1.$3".* | cut -d' ' -f1) # ranks at one place have the same
        for other in "$1.$3".*; do
            cmp -s "$file" "$other" || echo "$file and $other differ"
        done
        files="$files $file"
        set -- "$1" "$2" $(($3 + 1))
    done
    # shellcheck disable=SC2086 # a list
    paste -d'\n' $files | awk -v places="$2" -F'|' '{
        k = (NR - 1) % places
        for (i = 1; i <= NF; i++) value[i] = k == 0 ? $i : value[i] " " $i
        if (k == places - 1) {
            line = value[1]
            for (i = 2; i <= NF; i++) line = line "|" value[i]
            print line
        }
    }'
}

same() { # same CASE NAME PLACES
    join "$dir/$1-$2" "$3" >"$dir/joined"
    cmp -s "$dir/joined" "$dir/$1-1.0.0" && [ -s "$dir/joined" ]
}

cases="shuffled kept padded ragged drawn files streamed"
near() {
    paste "$1" "$2" | awk '{ for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); if (d * d > 1e-12) bad = 1 } }
        END { exit bad || NR != 3 }'
}

for case in $cases stopped resumed fitted; do
    one $script $case "$dir/$case-1"
    check "$case: one process" test "$status" -eq 0
done

for launcher in threads $some; do
    for case in $cases; do
        ranks "$launcher" 4 $script $case "$dir/$case-$launcher-4" data=4
        check "$launcher: $case on 4 ranks" test "$status" -eq 0
        check "$launcher: $case on 4 ranks are the batches of one" same $case "$launcher-4" 4
    done
    for case in shuffled ragged; do
        ranks "$launcher" 2 $script $case "$dir/$case-$launcher-2" data=2
        check "$launcher: $case on 2 ranks are the batches of one" same $case "$launcher-2" 2
        ranks "$launcher" 4 $script $case "$dir/$case-$launcher-22" data=2,model=2
        check "$launcher: $case on a mesh of 2 and 2" same $case "$launcher-22" 2
    done
    ranks "$launcher" 2 $script shuffled "$dir/shuffled-$launcher-m" model=2
    check "$launcher: without an axis for data all have all" same shuffled "$launcher-m" 1
    ranks "$launcher" 2 $script alone "$dir/alone-$launcher" data=2
    check "$launcher: over = false gives whole batches" test "$(head -n 1 "$dir/alone-$launcher.1.1")" = \
        "0 1 2 3 4 5 6 7 8 9"

    # train.fit computes the losses of whole batches.
    ranks "$launcher" 4 $script fitted "$dir/fitted-$launcher" data=2,model=2
    check "$launcher: ranks fit" test "$status" -eq 0
    check "$launcher: losses of train.fit are those of one process" near "$dir/fitted-1.0.0" "$dir/fitted-$launcher.1.3"

    # A set goes on where it stood, with another number of ranks.
    cp "$dir/stopped-1.st" "$dir/stopped-$launcher.st"
    ranks "$launcher" 4 $script resumed "$dir/resumed-$launcher" data=4
    check "$launcher: 4 ranks go on where one stopped" same resumed "$launcher" 4

    # What cannot be is told by all, before anything is read.
    ranks "$launcher" 2 $script odd "$dir/odd" data=2
    check "$launcher: a size that does not divide" warns "a batch of 9 rows: 2 ranks along 'data' cannot share it equally"
    ranks "$launcher" 4 $script rest "$dir/rest" data=4
    check "$launcher: a rest that does not divide" warns \
        "50 rows leave a last batch of 2: 4 ranks along 'data' cannot share it equally"
    ranks "$launcher" 2 $script keeps "$dir/keeps" data=2
    check "$launcher: a stream with a rest" warns \
        "nobody knows whether 2 ranks along 'data' can share the last rows equally"
    ranks "$launcher" 2 $script seeds "$dir/seeds" data=2
    check "$launcher: other seeds" warns "batches differs between ranks: rank 0 has 'seed = 0', rank 1 'seed = 1'"
    ranks "$launcher" 2 $script orders "$dir/orders" data=2
    check "$launcher: other orders" warns "batches differs between ranks: rank 0 has 'an order of rows"
done

closing
